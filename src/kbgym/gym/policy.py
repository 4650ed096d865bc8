"""The policy interface: the view of an agent, its tasks, and the agenda of a curator.

A policy is a function from a view to one action. It has no access to the world, to the store, or to a gold before its
answer. One policy object plays one pass. It may keep state, but the view has everything it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from kbgym.gym.actions import Action, Done, LinkMany, Look, Observation, Result
from kbgym.gym.tools import MOST_TARGETS, Role

T = TypeVar("T")

# All that a backward pass is told about the outcome of its forward pass.
PassVerdict = Literal["out of budget", "wrong", "right"]


class Turn(msgspec.Struct, frozen=True):
    """One action and the observation that followed."""

    action: Action
    observation: Observation


class Forward(msgspec.Struct, frozen=True, tag="forward"):
    """The reader's task, in training and in exams alike: answer the question.

    Attributes:
        question: The text of the question.
    """

    question: str


class Lookup(msgspec.Struct, frozen=True):
    """A search for members of a key: its words and its first unread page.

    `members` is the number of members on the previous page, None if no page was read. The search is for documents of
    these `kinds` (empty: all kinds of the key) and has at most the given number of pages (0: no limit). A search that
    `seeks` a document ends when a sentence with that beginning is seen.
    """

    query: str
    page: int = 1
    members: int | None = None
    kinds: tuple[str, ...] = ()
    most: int = 0
    seeks: tuple[str, ...] = ()


# Why a key is on the agenda. named: this question names it; asked: an earlier one did; incomplete: its index misses a
# document that was seen; doubted: other documents imply one it lacks; changed: facts under it changed; sibling: no
# question names it, but questions ask for its kind.
Reason = Literal["named", "asked", "incomplete", "doubted", "changed", "sibling"]


class IndexTask(msgspec.Struct, frozen=True):
    """The task of building or completing the index of a key, derived from the trace.

    `text` is the present or intended sentence of the index. `known` are documents under the key that are not linked
    yet, as (id, text), `linked` those that are, `stale` linked ones that no longer belong, `lookups` the remaining
    searches; without any, `known` is complete. With `then` the key has one more step (the cities of all people with a
    job).
    """

    kind: str
    value: str
    reason: Reason
    known: tuple[tuple[str, str], ...] = ()
    lookups: tuple[Lookup, ...] = ()
    index: str | None = None
    then: str = ""
    text: str = ""
    linked: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    @property
    def cost(self) -> int:
        """Return the fewest actions that complete the task: searches, adding the index, and linking what is known."""
        return len(self.lookups) + (self.index is None) + max(1, math.ceil(len(self.known) / MOST_TARGETS))


class Backward(msgspec.Struct, frozen=True, tag="backward"):
    """The curator's task: the question, the whole forward pass, the expected answers and the grade.

    Attributes:
        question: The text of the question.
        forward: Every turn of the forward pass.
        golds: The expected answers.
        f1: The F1 of the forward pass.
        verdict: `right`, `wrong` or `out of budget`.
        agenda: Open curation work of the strategy `class`, derived from earlier passes only; empty in the paper's
            protocol.
    """

    question: str
    forward: tuple[Turn, ...]
    golds: tuple[str, ...]
    f1: float
    verdict: PassVerdict
    agenda: tuple[IndexTask, ...] = ()


Task = Forward | Backward


class View(msgspec.Struct, frozen=True):
    """Everything an agent may see at one step. Fields that change between steps come last, so that prompts cache.

    Attributes:
        role: The role the agent plays.
        task: The task of the pass.
        history: The latest turns, at most as many as the memory holds.
        remaining: Actions left, including the current one.
    """

    role: Role
    task: Task
    history: tuple[Turn, ...]
    remaining: int


class AgentFailed(Exception):
    """The agent itself failed (no valid reply, a crash); the pass ends unscored with this reason."""


class Policy(Protocol):
    """Chooses one action for what an agent may see. One object plays one pass."""

    async def act(self, view: View) -> Action:
        """Return the next action; raise `AgentFailed` if the agent cannot continue."""
        ...


class Agenda(Protocol):
    """Rank the keys worth indexing next, using only the questions and results of earlier passes.

    Questions and turns are recorded in the order of the trace, live or replayed; nothing is stored on disk.
    """

    def note_question(self, text: str, lesson: Hashable = None) -> None:
        """Record a question; its lesson is active until it is released."""

    def note_turn(self, action: Action, result: Result, look: Look) -> None:
        """Record an action and its result. `look` returns the current text and links of a document."""

    def index_tasks(self, question: str, lesson: Hashable = None) -> tuple[IndexTask, ...]:
        """Return the tasks for a question, best first, and reserve their keys for its lesson."""

    def release(self, lesson: Hashable) -> None:
        """End a lesson and release the keys reserved for it."""

    def task_for(self, index: str) -> IndexTask | None:
        """Return the task of revising an index whose facts changed, or None if its key is unknown."""

    def index_text(self, index_task: IndexTask) -> str:
        """Return the text of the index for a task."""


# A function that creates a policy for a pass.
Agent = Callable[[], Policy]

# A generator that yields actions, is sent their observations and returns a value.
Steps = Generator[Action, Observation, T]


class PlannedPolicy:
    """A policy written as a generator over a whole pass, which returns its last action.

    `final_action` is called instead when only one action is left.
    """

    def __init__(self, start: Callable[[View], Steps[Action]], final_action: Callable[[View], Action]) -> None:
        self._start = start
        self._final_action = final_action
        self._steps: Steps[Action] | None = None

    async def act(self, view: View) -> Action:
        if view.remaining <= 1:
            return self._final_action(view)
        try:
            if self._steps is None:
                self._steps = self._start(view)
                return next(self._steps)
            return self._steps.send(view.history[-1].observation)
        except StopIteration as end:
            last: Action = end.value
            return last


class PlannedCurator(PlannedPolicy):
    """A planned policy that edits the store; `remaining` is the number of actions left."""

    def __init__(self) -> None:
        super().__init__(self._plan_pass, lambda view: Done())
        self.remaining = 0

    async def act(self, view: View) -> Action:
        self.remaining = view.remaining
        return await super().act(view)

    def _plan_pass(self, view: View) -> Steps[Action]:
        raise NotImplementedError

    def _link(self, index: str, members: Sequence[str]) -> Steps[None]:
        """Link an index in batches, as far as the budget allows."""
        for start in range(0, len(members), MOST_TARGETS):
            if self.remaining > 1:
                yield LinkMany(index, tuple(members[start : start + MOST_TARGETS]))
