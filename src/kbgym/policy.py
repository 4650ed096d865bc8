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
Verdict = Literal["out of budget", "wrong", "right"]


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
    (the cities of everybody with a job) and `known` is all there is.
    """

    kind: str
    value: str
    reason: Literal["named", "unfinished", "sibling"]
    known: tuple[tuple[str, str], ...] = ()
    page: int = 1
    index: str | None = None
    then: str = ""


class Backward(msgspec.Struct, frozen=True, tag="backward"):
    """The curator's task: the question, the whole forward trajectory, the gold, and how it went.

    `agenda` is empty in the paper's protocol. None of it comes from a world or a test set: it is what earlier passes
    saw and left.
    """

    question: str
    forward: tuple[Turn, ...]
    golds: tuple[str, ...]
    f1: float
    verdict: Verdict
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


# A fresh policy for every pass.
Agent = Callable[[], Policy]
