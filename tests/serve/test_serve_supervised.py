"""Questions belong to their clients, passes to their budgets; learning survives any failure."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from serving import family_store, opened

from kbgym.gym.actions import Action, Search
from kbgym.gym.policy import View
from kbgym.serving.clients import Refusal
from kbgym.serving.learning import learner
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.question_log import MOST_OPEN, MOST_TURNS, QuestionLog
from kbgym.serving.tool_calls import visible
from kbgym.store import Store
from kbgym.trace import log
from kbgym.trace.events import Acted, Began, Ended, Noted
from kbgym.trace.folder import StoreFolder

QUESTION = "What is the job of Ada Alm?"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return family_store(tmp_path / "store")


class Raising:
    """A curator that cannot do its work."""

    async def act(self, view: View) -> Action:
        raise ValueError("no idea")


async def until(true, seconds: float = 20.0) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.01)


def test_a_client_sees_its_own_questions_and_never_golds(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            mine = await online.ask(QUESTION, "ada")
            later = await online.ask(QUESTION, "ada")
            assert len({mine.id, later.id}) == 2 and len(mine.id) > 15, "an id that can be guessed"
            await online.gold(mine.id, ("baker",))
            found = online.find(mine.id, "ada")
            assert (visible(found, "reader").golds, visible(found, "curator").golds) == ((), ("baker",))
            with pytest.raises(Refusal, match="no question"):
                online.find(mine.id, "bo")

    asyncio.run(work())


def test_who_asked_is_known_after_a_restart(place: Path) -> None:
    async def ask() -> str:
        async with opened(place) as online:
            return (await online.ask(QUESTION, "ada")).id

    async def look(id: str) -> None:
        async with opened(place) as online:
            assert online.find(id, "ada").client == "ada"

    asyncio.run(look(asyncio.run(ask())))


def test_an_open_question_has_the_readers_budget(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            opening = await online.open(QUESTION, "ada")
            for _ in range(opening.budget):
                await online.act(opening.id, "ada", Search("job"))
            with pytest.raises(Refusal):
                await online.act(opening.id, "ada", Search("job"))
            found = online.find(opening.id)
            assert (found.outcome, found.actions, found.answer) == ("out_of_budget", opening.budget, None)

    asyncio.run(work())


def test_opening_many_questions_costs_nobody_else_his_own(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            mine = await online.open(QUESTION, "ada")
            others = [await online.open(QUESTION, "bo") for _ in range(MOST_OPEN + 3)]
            assert (await online.act(mine.id, "ada", Search("job"))).observation.text
            with pytest.raises(Refusal):
                await online.act(others[0].id, "bo", Search("job"))
            await online.act(others[-1].id, "bo", Search("job"))
            assert online.open_questions.total == MOST_OPEN + 1

    asyncio.run(work())


async def graded(online: Online) -> str:
    asked = await online.ask(QUESTION, "ada")
    await online.gold(asked.id, ("baker",))
    return asked.id


def test_a_lesson_that_fails_by_its_own_fault_is_set_aside_and_the_next_has_its_turn(place: Path) -> None:
    async def work() -> None:
        async with opened(place, curator=Raising) as online:
            good = online.curator
            online.start()
            bad = await graded(online)
            await until(lambda: online.find(bad).state == "set aside")
            assert "no idea" in online.find(bad).note
            from kbgym.agents.reference.curator import ReferenceCurator

            online.curator = ReferenceCurator
            next_one = await graded(online)
            await until(lambda: online.find(next_one).state == "learnt")
            assert online.is_learning and online.failures == 0 and good is Raising

    asyncio.run(work())
    notes = [e.data["reason"] for e in StoreFolder(place).events if isinstance(e, Noted) and e.kind == "set aside"]
    assert notes == ["ValueError: no idea"]


def test_learning_goes_on_when_the_disk_is_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "FIRST_PAUSE", 0.01)
    real, full = os.fsync, [False]

    def fsync(file: int) -> None:
        if full[0]:
            raise OSError(28, "No space left on device")
        real(file)

    async def work() -> None:
        async with opened(place) as online:
            id = await graded(online)
            full[0] = True
            online.start()
            await until(lambda: online.failures >= 3)
            assert online.is_learning
            full[0] = False
            await until(lambda: online.find(id).state == "learnt")
            await until(lambda: online.failures == 0)

    monkeypatch.setattr(log.os, "fsync", fsync)
    asyncio.run(work())
    assert StoreFolder(place).store().links > 0


def test_served_questions_do_not_grow_without_bound() -> None:
    questions, store = QuestionLog(most=50), Store([])
    for number in range(1, 700):
        questions(Began(number, "forward", "reader", f"q{number}", "Who?"), store, "")
        questions(Acted(number, "forward", 1, Search("who"), None), store, "nobody")  # type: ignore[arg-type]
        questions(Ended(number, "forward", "answered"), store, "")
    assert len(questions.asked) == 50 and len(questions.turns) <= MOST_TURNS and questions.total == 699
