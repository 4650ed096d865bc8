"""The questions a served store was asked, as its trace tells: the answers, what was said about them, what was learnt.

It follows the trace: after a restart it knows what it knew, questions still to be learnt from included. It asks
nothing and changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

import msgspec

from kbgym.actions import Answer
from kbgym.online.measures import Row
from kbgym.policy import Turn
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Event, Graded, Noted

MOST = 2_000  # questions whose trajectory is kept at hand

State = Literal["answered", "graded", "learnt", "refused"]


class Asked(msgspec.Struct, frozen=True):
    """One question. `state`: answered, graded (the backward pass is to come), learnt, or refused by the gate."""

    id: str
    question: str
    agent: str
    outcome: str = ""
    answer: str | None = None
    actions: int = 0
    state: State = "answered"
    golds: tuple[str, ...] = ()
    f1: float | None = None
    em: float | None = None
    right: bool | None = None
    note: str = ""


class Questions:
    """Every question by id, its trajectory while it may be needed, and the rows of the prequential measure."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.asked: OrderedDict[str, Asked] = OrderedDict()
        self.turns: OrderedDict[str, tuple[Turn, ...]] = OrderedDict()
        self.rows: list[Row] = []
        self._now: str | None = None

    def __call__(self, event: Event, store: Store, observation: str) -> None:
        match event:
            case Began(_, "forward", agent, question, text, 0):  # a training's passes have an epoch, and are no traffic
                self._now = question
                self.asked[question] = Asked(question, text, agent)
                self.turns[question] = ()
                if len(self.turns) > MOST:
                    self.turns.popitem(last=False)
            case Acted(_, "forward", _, action) if self._now is not None:
                self.turns[self._now] = (*self.turns.get(self._now, ()), Turn(action, observation))
                answer = action.text if isinstance(action, Answer) else None
                self._change(self._now, answer=answer, actions=self.asked[self._now].actions + 1)
            case Noted(_, "stale", {"phase": "forward"}) if self._now is not None:
                self._change(self._now, actions=self.asked[self._now].actions + 1)
            case Ended(_, "forward", outcome) if self._now is not None:
                self._change(self._now, outcome=outcome)
                self._now = None
            case Graded(iteration, question, golds, f1, em) if question in self.asked:
                self._change(question, golds=golds, f1=f1, em=em, state="graded", right=em == 1.0)
                self._row(Row(question, iteration, self.asked[question].actions, em, f1))
            case Noted(iteration, "feedback", {"question": str(question), "right": bool(right)}):
                if question in self.asked:
                    self._change(question, right=right)
                    self._row(Row(question, iteration, self.asked[question].actions, float(right)))
            case Began(_, "backward", _, question) if question in self.asked:
                self._change(question, state="learnt")
            case Noted(_, "admission", {"verdict": str(verdict), "question": str(question), "reason": str(reason)}):
                if question in self.asked and verdict == "quarantined":
                    self._change(question, state="refused", note=reason)

    @property
    def to_learn(self) -> list[str]:
        """Graded and not yet taught, oldest first."""
        return [id for id, asked in self.asked.items() if asked.state == "graded" and asked.golds]

    def _change(self, id: str, **fields: object) -> None:
        self.asked[id] = msgspec.structs.replace(self.asked[id], **fields)

    def _row(self, row: Row) -> None:
        self.rows.append(row)
