"""A pass on a copy: when it may still land, what is taken out of it, and what the trace keeps of what did not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from live_stores import EventListener, live_store
from store_fixtures import records

from kbgym.gym.actions import Action, Add, Answer, Answered, Delete, Done, Edit, Link, Opened, Read
from kbgym.gym.environment import Step
from kbgym.gym.episode import play
from kbgym.gym.policy import Backward, Forward, View
from kbgym.store import Store
from kbgym.trace.backend import save_store
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Noted, RolledBack
from kbgym.trace.live import LiveStore
from kbgym.training.lessons import Progress
from kbgym.training.staged import (
    StagedEdits,
    apply_edits,
    record_forward,
    reject_edits,
    stage,
    unchanged,
)

TASK = Backward("Who?", (), ("x",), 0.0, "wrong")


class Played:
    """An agent that does what it is told."""

    def __init__(self, *actions: Action) -> None:
        self.actions = iter(actions)

    def __call__(self) -> Played:
        return self

    async def act(self, view: View) -> Action:
        return next(self.actions, Done())


def tried(
    folder: Path, actions: tuple[Action, ...], work: Callable[[LiveStore, StagedEdits], Awaitable[None]]
) -> list[Event]:
    """Return the recorded events of a pass with these actions after `work` has staged it."""
    save_store(Store(records()), str(folder))
    ear = EventListener()

    async def playing() -> None:
        live = live_store(folder, [ear])
        await work(live, await stage(live, Played(*actions), TASK, 30, 30))
        await live.close()

    asyncio.run(playing())
    return ear.events


@pytest.mark.parametrize(
    ("meanwhile", "may_land"),
    [
        (Edit("d1", "Bo Ek lives in Malmö."), True),
        (Edit("d0", "Anna Berg lives in Malmö."), False),
        (Link("d0", "d3"), False),
        (Delete("d0"), False),
    ],
)
def test_a_pass_may_land_while_what_it_changes_is_what_it_was(
    tmp_path: Path, meanwhile: Action, may_land: bool
) -> None:
    async def work(live: LiveStore, made: StagedEdits) -> None:
        assert unchanged(live, made)
        async with live.write():
            await live.environment.carry_out(meanwhile)
        assert unchanged(live, made) == may_land

    tried(tmp_path / "s", (Edit("d0", "Anna Berg moved to Ystad."), Add("Readers of Ibsen.")), work)


def test_a_step_that_is_true_no_more_is_kept_with_the_iteration_it_was_true_of(tmp_path: Path) -> None:
    async def work(live: LiveStore, made: StagedEdits) -> None:
        async with live.write():
            await live.environment.carry_out(Delete("d1"))
            await apply_edits(live, 1, "backward", made)

    (note, done) = tried(tmp_path / "s", (Read("d1"),), work)
    assert isinstance(note, Noted) and note.kind == "stale" and note.data["at"] == 0
    assert isinstance(done, Acted) and done.action == Done()


def test_a_finished_forward_pass_is_recorded_from_its_question_to_its_outcome(tmp_path: Path) -> None:
    began = Began(1, "forward", "reader", "q", "Who?", 1)

    async def work(live: LiveStore, made: StagedEdits) -> None:
        base, played = live.snapshot(), Played(Read("d1"), Read("d2"), Answer("Bo Ek"))
        passed = await play(played, base.environment(), "reader", Forward("Who?"), 15, 30)
        async with live.write():
            await live.environment.carry_out(Delete("d1"))
            record_forward(live, began, passed, base)

    events = tried(tmp_path / "s", (), work)
    assert events[0] == began and events[-1] == Ended(1, "forward", "answered")
    stale, read, answered = events[1:-1]
    assert isinstance(stale, Noted) and (stale.kind, stale.data["at"], stale.data["phase"]) == ("stale", 0, "forward")
    assert read == Acted(1, "forward", 2, Read("d2"), Opened("d2", ()))
    assert answered == Acted(1, "forward", 3, Answer("Bo Ek"), Answered())


def test_a_refused_edit_is_kept_without_one(tmp_path: Path) -> None:
    async def work(live: LiveStore, made: StagedEdits) -> None:
        async with live.write():
            reject_edits(live, 1, "backward", made)

    (note, _) = tried(tmp_path / "s", (Delete("d1"),), work)
    assert isinstance(note, Noted) and note.kind == "refused" and "at" not in note.data
    assert (note.data["phase"], note.data["step"], note.data["action"]["tool"]) == ("backward", 1, "delete")


def test_progress_keeps_the_steps_of_the_two_passes_apart() -> None:
    progress, store = Progress(), Store(records())
    progress(Began(1, "forward", "a", "q", "?", 1), store, "")
    progress(Acted(1, "forward", 1, Read("d0"), Opened("d0", ())), store, "the first")
    progress(Acted(1, "backward", 1, Read("d1"), Opened("d1", ())), store, "the second")
    underway = progress.begun[1, "q"]
    assert underway.forward == [Step(Read("d0"), Opened("d0", ()), "the first")]
    assert underway.backward == [Step(Read("d1"), Opened("d1", ()), "the second")]


def test_progress_counts_the_lessons_that_are_over_and_not_what_a_rollback_undid() -> None:
    progress, store = Progress(), Store(records())
    for number, outcome in enumerate(("done", "agent_failed", "done"), 1):
        progress(Began(number, "forward", "a", f"q{number}", "?", 1), store, "")
        assert progress.over == number - 1
        progress(Ended(number, "forward", "agent_failed" if outcome == "agent_failed" else "answered"), store, "")
        assert progress.over == number - (outcome == "done")
        if outcome == "done":
            progress(Ended(number, "backward", outcome), store, "")
        progress(Committed(number, progress.over, "", 0, 0), store, "")
    assert progress.over == 3
    progress(RolledBack(4, 1), store, "")
    assert progress.over == 1 and list(progress.begun) == [(1, "q1")]
    progress(Began(5, "forward", "a", "q1", "?", 1), store, "")
    assert progress.over == 0, "what is begun again is not over"
