"""Lessons side by side and a judge that takes its time: the guard sees what the other lessons did meanwhile."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from kbgym.api.factory import embedder_named
from kbgym.gym.actions import Action, Add, Answer, Done, Edit
from kbgym.gym.policy import View
from kbgym.search.factory import engine_for
from kbgym.trace.folder import StoreFolder
from kbgym.training.run import Run, Settings
from kbgym.training.session import Agents
from kbgym.training.trainer import Trainer
from kbgym.worlds.people import generate
from kbgym.worlds.world import World


class SlowJudge:
    """Thinks while other lessons act; two sentences are the same when they differ in commas only."""

    name = "slow"

    async def duplicate(self, candidate: str, existing: str) -> bool:
        for _ in range(50):
            await asyncio.sleep(0)
        return candidate.replace(",", "") == existing.replace(",", "")


class Reader:
    async def act(self, view: View) -> Action:
        return Answer("unknown")


def trained(folder: Path, world: World, *scripts: list[Action]) -> Trainer:
    """A training of one lesson a script, all at once; each script is one curator's actions."""
    numbers = count()

    class Curator:
        def __init__(self) -> None:
            self.script = iter(scripts[next(numbers)])

        async def act(self, view: View) -> Action:
            return next(self.script, Done())

    settings = Settings(questions=len(scripts), epochs=1, embedder="hash", batch_size=len(scripts), eval=False)
    run = Run.open_or_create(folder, world, settings)
    engine = partial(engine_for, embedder=embedder_named("hash"))
    trainer = Trainer(run, Agents(Reader, Curator, SlowJudge()), engine)
    asyncio.run(trainer.train())
    return trainer


@pytest.fixture(scope="module")
def world() -> World:
    return generate(people=80, seed=3)


def test_two_lessons_that_add_one_index_end_with_one(tmp_path: Path, world: World) -> None:
    near = world.documents[0].text.removesuffix(".")  # near enough for the judge to be asked about it, by both
    store = trained(tmp_path / "run", world, [Add(f"{near} here.")], [Add(f"{near}, here.")]).store
    assert sum(record.flag == "authored" for record in store) == 1
    assert StoreFolder(tmp_path / "run").store().fingerprint == store.fingerprint


def test_an_addition_is_not_merged_into_a_document_that_says_something_else_by_now(
    tmp_path: Path, world: World
) -> None:
    document = world.documents[0]
    near = document.text.replace(" is ", ", is ", 1)
    edited = "Nothing of the kind is known any more."
    store = trained(tmp_path / "run", world, [Add(near)], [Edit(document.id, edited)]).store
    texts = {record.text for record in store}
    assert store[document.id].text in (edited, document.text)
    if store[document.id].text == edited:  # the fact that was added is still somewhere
        assert near in texts or document.text in texts
