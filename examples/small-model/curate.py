"""Let the small model train stores, in PyTorch: what `kbgym train --curator small` does in llama.cpp, many at once.

    python curate.py --base SmolLM2-135M-Instruct.Q4_1.gguf --adapter small_curator.gguf --experiment exp/small

The trainings of the experiment whose curator is `small` are run, for every seed. The reader is the one their settings
name, the trace is kbgym's own; only the model is here instead of behind a server. As many lessons as the settings'
batch size are under way at once, and what they ask is written together with what the other seeds ask.
"""

from __future__ import annotations

import argparse
import asyncio
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import torch
from play import PlayedStores, QueuedModel, Writer, model
from small_curator import SmallCuratorPolicy

from kbgym.agents.llm.values import ModelSettings, Reply, Request
from kbgym.api import teach, trainer_for
from kbgym.api.factory import agents_named
from kbgym.experiments.experiment import read_plan, seed_folder
from kbgym.search.base import search_named
from kbgym.training.run import Run
from kbgym.worlds.kinds import search_of
from kbgym.worlds.world import World

QUIET = 0.03  # seconds in which nobody else asks: then those who asked are answered


class Desk:
    """Collects what the lessons of one training ask, and sends it when nobody else is about to ask."""

    def __init__(self, line: Connection, at_once: int) -> None:
        self.line, self.at_once = line, at_once
        self.waiting: dict[str, tuple[str, asyncio.Future[str]]] = {}
        self._due: asyncio.TimerHandle | None = None

    def expect(self) -> None:
        loop = asyncio.get_running_loop()
        if self._due:
            self._due.cancel()
        self._due = loop.call_later(0 if len(self.waiting) >= self.at_once else QUIET, self._answer)

    def _answer(self) -> None:
        self.line.send({id: prompt for id, (prompt, _) in self.waiting.items()})
        for id, text in self.line.recv().items():
            self.waiting.pop(id)[1].set_result(text)
        if self.waiting:
            self.expect()


class DeskModel(QueuedModel):
    def __init__(self, id: str, desk: Desk) -> None:
        super().__init__(id, desk.waiting)
        self.desk = desk

    async def ask(self, request: Request) -> Reply:
        asking = asyncio.ensure_future(super().ask(request))
        await asyncio.sleep(0)
        self.desk.expect()
        return await asking


def work(line: Connection, place: str) -> None:
    """The process of a store: trains it."""
    line.recv()
    folder = Path(place)
    plan = read_plan(folder.parent.parent)
    (training,) = (one for one in plan.trainings if one.name == folder.name)
    world = World.load(folder.parent / "world")
    seed = int(folder.parent.name.removeprefix("seed-"))
    settings = msgspec.structs.replace(training.settings, seed=seed, search=search_named(search_of(world)))
    desk, numbers = Desk(line, settings.batch_size), count()

    def curator() -> SmallCuratorPolicy:
        return SmallCuratorPolicy(DeskModel(str(next(numbers)), desk), ModelSettings("small", 0.0, None, 1))

    run = Run.open_or_create(folder, world, settings)
    agents = agents_named(settings, curator=curator, world=world)
    teach(trainer_for(run, agents), lambda done, total, note: print(f"{place}: {done} of {total}  {note}", flush=True))
    line.send([])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--adapter", type=Path, required=True)
    parser.add_argument("--experiment", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=128, help="passes at once")
    parser.add_argument("--length", type=int, default=4_096)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked = parser.parse_args()
    plan = read_plan(asked.experiment)
    names = [training.name for training in plan.trainings if training.settings.curator == "small"]
    places = [str(seed_folder(asked.experiment, seed) / name) for seed in plan.seeds for name in names]
    player, made = model(asked.base, asked.adapter, torch.float32, asked.device)
    torch.set_float32_matmul_precision("high")
    PlayedStores(Writer(player, asked.rows, asked.length), made, places, work).play([["train"]] * len(places))


if __name__ == "__main__":
    main()
