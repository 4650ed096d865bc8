"""Actions until a reader without grammar sees all supporting sentences of real questions, flat and with pages.

    python benchmarks/real_text.py [--data FOLDER]

HotpotQA and MuSiQue, 100 questions each with their distractors, hybrid search, rich observations, budget 15. `paging`
only turns the question's pages; `general` is `--agent general`. Flat must not be below paging at any number of actions,
and pages not below flat. Intervals are 95%, over questions. Without the data it says so and stops.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from kbgym.agents.general.reader import GeneralReader
from kbgym.analysis.statistics import Sampled, difference
from kbgym.api.factory import embedder_named
from kbgym.baselines import build_arm, engine_for_arm
from kbgym.corpus.public import read_public
from kbgym.gym.actions import Action, Answer, Search
from kbgym.gym.policy import Agent, View
from kbgym.training.exam import Row, examine, summarise
from kbgym.training.run import Settings
from kbgym.worlds.world import World

DATA = Path(os.environ.get("KBGYM_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SETS = (("hotpotqa", "hotpotqa-100.json"), ("musique", "musique-100.jsonl"))
SHOWN = (1, 2, 3, 4, 6, 8, 10, 15)
BUDGET = Settings().forward_budget


class PagingReader:
    """It turns the question's pages until the budget ends."""

    async def act(self, view: View) -> Action:
        question = getattr(view.task, "question", "")
        return Search(question, len(view.history) + 1) if view.remaining > 1 else Answer("unknown")


ARMS: tuple[tuple[str, str, Agent], ...] = (
    ("flat", "paging", PagingReader),
    ("flat", "general", GeneralReader),
    ("pages", "general", GeneralReader),
)


def rows_of(world: World, arm: str, reader: Agent) -> tuple[list[Row], int]:
    store = build_arm(arm, world).store
    settings = Settings(search="hybrid", observations="rich")
    engine = engine_for_arm(arm, store, embedder_named(""), search="hybrid")
    return asyncio.run(examine(store, engine, world.questions, reader, settings=settings)), store.links


def curve(rows: Sequence[Row]) -> list[float]:
    """The share with all supports seen, by actions; a pass that ended stays where it was."""
    told = [row.evidence for row in rows if row.evidence is not None and row.evidence.supports]
    return [sum(one.all_within(k) for one in told) / len(told) for k in range(1, BUDGET + 1)]


def within(rows: Sequence[Row], actions: int) -> str:
    seen = [float(row.evidence.all_within(actions)) for row in rows if row.evidence is not None]
    share = difference([Sampled(seen, [0.0] * len(seen))], scores=True).interval
    return f"{share.value:.2f} [{share.low:.2f}, {share.high:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    folder = parser.parse_args().data
    if not all((folder / file).is_file() for _, file in SETS):
        print("Not measured: the question sets are not here (hotpotqa-100.json, musique-100.jsonl; see --data).")
        return
    print(f"| set | arm, reader | {' | '.join(f'within {k}' for k in SHOWN)} | actions | characters | F1 | links |")
    print("|" + " --- |" * (len(SHOWN) + 6))
    notes: list[str] = []
    for name, file in SETS:
        world = read_public(name, folder / file, None, 0).world
        found = {(arm, said): rows_of(world, arm, reader) for arm, said, reader in ARMS}
        for (arm, said), (rows, links) in found.items():
            summary, shares = summarise(rows), curve(rows)
            cells = [within(rows, k) if k in (4, 8) else f"{shares[k - 1]:.2f}" for k in SHOWN]
            print(
                f"| {name} (n = {summary.n}) | {arm}, {said} | {' | '.join(cells)} | {summary.actions:.2f} "
                f"| {summary.characters:,.0f} | {summary.f1:.3f} | {links:,} |",
                flush=True,
            )
        paging, flat, pages = (found[arm, said][0] for arm, said, _ in ARMS)
        ratio = summarise(pages).characters / summarise(flat).characters
        notes.append(
            f"{name}: flat below paging at {_below(flat, paging)}, pages below flat at {_below(pages, flat)}, "
            f"pages read {ratio:.2f} of flat's characters."
        )
    print("\n" + "\n".join(notes))


def _below(rows: Sequence[Row], others: Sequence[Row]) -> str:
    pairs = enumerate(zip(curve(rows), curve(others), strict=True), 1)
    return ", ".join(str(k) for k, (own, other) in pairs if own < other) or "no number of actions"


if __name__ == "__main__":
    main()
