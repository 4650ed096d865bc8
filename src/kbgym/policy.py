"""The seam between the protocol and whoever plays: what an agent may see, and the one thing it must do.

A policy is a function from a view to one action. It is given no world, no store and no gold before its answer. One
policy object plays one pass; it may remember what it likes, but everything it needs is in the view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from kbgym.actions import Action
from kbgym.tools import Role

# What a backward pass is told about its forward pass, and nothing finer.
PassVerdict = Literal["out of budget", "wrong", "right"]


class Turn(msgspec.Struct, frozen=True):
    """One action and what came back."""

    action: Action
    observation: str


class Forward(msgspec.Struct, frozen=True, tag="forward"):
    """The reader's task, in training and in an exam alike: answer the question."""

    question: str


class Errand(msgspec.Struct, frozen=True):
    """A key worth an index, as the agenda knows it from the trace.

    `named` by this question, `unfinished` since an earlier one, or a `sibling`: unasked so far, of a kind questions ask
    for. `known` are documents that belong under it, as (id, text); `page` is the first page of its search nobody has
    looked at. With an `index`, `known` is what that index does not link yet. With `then` the key is one step further
    (the cities of everybody with a job) and `known` is all there is; with `part` it is what lies between two values
    there, and parts that have an index stand among what is known of the whole.
    """

    kind: str
    value: str
    reason: Literal["named", "unfinished", "sibling"]
    known: tuple[tuple[str, str], ...] = ()
    page: int = 1
    index: str | None = None
    then: str = ""
    part: tuple[str, str] | None = None


class Backward(msgspec.Struct, frozen=True, tag="backward"):
    """The curator's task: the question, the whole forward trajectory, the gold, and how it went.

    `agenda` is empty in the paper's protocol. None of it comes from a world or a test set: it is what earlier passes
    saw and left.
    """

    question: str
    forward: tuple[Turn, ...]
    golds: tuple[str, ...]
    f1: float
    verdict: PassVerdict
    agenda: tuple[Errand, ...] = ()


Task = Forward | Backward


class View(msgspec.Struct, frozen=True):
    """Everything an agent may see at one step. What changes from step to step comes last, so that prompts cache."""

    role: Role
    task: Task
    history: tuple[Turn, ...]
    remaining: int


class AgentFailed(Exception):
    """The agent itself could not go on (no valid reply, a crash): the pass ends unscored, with this reason."""


class Policy(Protocol):
    async def act(self, view: View) -> Action: ...


class Agenda(Protocol):
    """What is worth indexing next, from what earlier passes asked and saw and from nothing else.

    It is told every question and every turn in the order of the trace, live or replayed, and keeps nothing on disk.
    """

    def note_question(self, text: str) -> None: ...

    def note_turn(self, action: Action, observation: str) -> None: ...

    def errands(self, question: str) -> tuple[Errand, ...]:
        """What to work on after this question, best first."""

    def errand_of(self, text: str) -> Errand | None:
        """To go over the index of this text again; None where the text names no key."""

    def index_text(self, errand: Errand) -> str:
        """What an index for it is called."""


# A fresh policy for every pass.
Agent = Callable[[], Policy]
