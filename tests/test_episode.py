"""One pass: budget, memory, how it ends, and what the policy is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from store_fixtures import engine_of, records
from turns import turn

from kbgym.codes import code
from kbgym.gym.actions import Action, Add, Answer, Done, Error, Finished, Invalid, Link, Linked, Opened, Read, Search
from kbgym.gym.environment import Environment
from kbgym.gym.episode import Transcript, play
from kbgym.gym.observations import documents
from kbgym.gym.policy import AgentFailed, Backward, Forward, IndexTask, View
from kbgym.gym.tools import Role
from kbgym.store import Record, Store


class Script:
    """A policy that plays given actions, then reads for ever; it keeps every view it was shown."""

    def __init__(self, actions: Iterable[Action | Exception]) -> None:
        self.actions = list(actions)
        self.views: list[View] = []

    async def act(self, view: View) -> Action:
        self.views.append(view)
        action = self.actions.pop(0) if self.actions else Read("d0")
        if isinstance(action, Exception):
            raise action
        return action


def run(policy: Script, role: Role = "reader", budget: int = 5, memory: int = 30) -> Transcript:
    store = Store(records())
    task = Forward("Where does Anna Berg live?")
    return asyncio.run(play(policy, Environment(store, engine_of(store)), role, task, budget, memory))


def test_an_answer_ends_the_pass() -> None:
    policy = Script([Search("Anna Berg"), Answer(" Lund ")])
    transcript = run(policy)
    assert (transcript.outcome, transcript.answer, len(transcript.steps)) == ("answered", "Lund", 2)
    assert transcript.characters == sum(len(turn.observation.text) for turn in transcript.turns)


def test_done_ends_a_curators_pass_without_an_answer() -> None:
    transcript = run(Script([Add("Something."), Done()]), "curator")
    assert (transcript.outcome, transcript.answer, len(transcript.steps)) == ("done", None, 2)


def test_out_of_budget_is_told_apart_from_an_answer() -> None:
    transcript = run(Script([]), budget=4)
    assert (transcript.outcome, transcript.answer, len(transcript.steps)) == ("out_of_budget", None, 4)


def test_an_answer_on_the_last_action_counts() -> None:
    assert run(Script([Read("d0"), Answer("x")]), budget=2).outcome == "answered"


@pytest.mark.parametrize("mistake", [Answer(""), Answer("\x00"), Done(), Invalid("x", "y"), Add("Something.")])
def test_a_mistake_costs_an_action_and_does_not_end_the_pass(mistake: Action) -> None:
    transcript = run(Script([mistake, Answer("x")]), budget=2)
    assert transcript.outcome == "answered" and len(transcript.steps) == 2
    assert transcript.steps[0].observation.text.startswith("Error: ")
    assert run(Script([mistake, Answer("x")]), budget=1).outcome == "out_of_budget"


def test_an_agent_that_fails_ends_the_pass_unscored() -> None:
    transcript = run(Script([Read("d0"), AgentFailed("no valid reply")]))
    assert (transcript.outcome, transcript.failure, len(transcript.steps)) == ("agent_failed", "no valid reply", 1)


def test_a_bug_in_a_policy_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        run(Script([ZeroDivisionError()]))


def test_memory_is_first_in_first_out_and_the_budget_counts_down() -> None:
    policy = Script([Search(f"query {n}") for n in range(6)])
    run(policy, budget=6, memory=3)
    assert [view.remaining for view in policy.views] == [6, 5, 4, 3, 2, 1]
    assert [len(view.history) for view in policy.views] == [0, 1, 2, 3, 3, 3]
    last = [turn.action for turn in policy.views[-1].history]
    assert last == [Search("query 2"), Search("query 3"), Search("query 4")]
    assert all(view.task == Forward("Where does Anna Berg live?") for view in policy.views)


def test_a_pass_cut_short_goes_on_with_what_is_left() -> None:
    store = Store(records())
    environment = Environment(store, engine_of(store))
    past = asyncio.run(play(Script([Read("d0"), Read("d1")]), environment, "reader", Forward("?"), 2)).steps
    policy = Script([Read("d2"), Answer("x")])
    transcript = asyncio.run(play(policy, environment, "reader", Forward("?"), 5, past=past))
    assert transcript.steps[:2] == past and len(transcript.steps) == 4 and transcript.answer == "x"
    assert [view.remaining for view in policy.views] == [3, 2]
    assert [turn.action for turn in policy.views[0].history] == [Read("d0"), Read("d1")]


def test_a_pass_cut_short_after_its_answer_is_over() -> None:
    store = Store(records())
    environment = Environment(store, engine_of(store))
    whole = asyncio.run(play(Script([Read("d0"), Answer("x")]), environment, "reader", Forward("?"), 5))
    policy = Script([])
    assert asyncio.run(play(policy, environment, "reader", Forward("?"), 5, past=whole.steps)) == whole
    assert not policy.views


def shown_only(actions: Iterable[Action], role: Role = "reader", task: Forward | Backward | None = None) -> Transcript:
    """A pass over a store whose ids are codes."""
    store = Store(Record(code(n), record.text, origin=code(n)) for n, record in enumerate(records(), 1))
    environment = Environment(store, engine_of(store))
    return asyncio.run(play(Script(actions), environment, role, task or Forward("Where does Anna Berg live?"), 4))


def test_a_document_that_was_not_shown_cannot_be_named() -> None:
    passed = shown_only([Read(code(1)), Search("Anna Berg"), Answer("Lund")])
    assert passed.steps[0].action == Invalid("read", f"[{code(1)}] has not been shown in this pass.")
    assert isinstance(passed.steps[0].result, Error)
    seen = documents(passed.steps[1].observation)[0][0]
    assert isinstance(shown_only([Search("Anna Berg"), Read(seen), Answer("Lund")]).steps[1].result, Opened)


def test_a_curator_may_name_what_its_task_shows() -> None:
    forward = (turn(Search("Anna"), f"Results for 'Anna'\n[{code(1)}] Anna Berg lives in Lund."),)
    index_task = IndexTask("city", "Lund", "named", known=((code(2), "Bo lives in Lund."),))
    task = Backward("Who?", forward, ("Anna",), 0.0, "wrong", (index_task,))
    passed = shown_only([Link(code(1), code(2)), Link(code(1), code(3)), Done()], "curator", task)
    assert [type(step.result) for step in passed.steps] == [Linked, Error, Finished]
    index_task = IndexTask("city", "Lund", "incomplete", index=code(1), linked=(code(2),))
    task = Backward("Who?", (), ("Anna",), 0.0, "wrong", (index_task,))
    passed = shown_only([Link(code(1), code(2)), Link(code(1), code(3)), Done()], "curator", task)
    assert [type(step.result) for step in passed.steps] == [Linked, Error, Finished]


def test_a_store_of_other_ids_takes_any() -> None:
    assert isinstance(run(Script([Read("d0"), Answer("Lund")])).steps[0].result, Opened)
