"""Prequential measures: how well questions were answered before anything was learnt from them, over windows.

They are a fold over the trace, live or replayed; the file beside it is written for people and other programs and may
be thrown away.


The questions a served store was asked, as its trace tells: the answers, what was said about them, what was learnt.

It follows the trace: after a restart it knows what it knew, questions still to be learnt from included. Only the latest
questions that are done with are kept; the trace has them all. It asks nothing and changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kbgym.canonical import encode, write_lines
from kbgym.gym.actions import Answer, Observation
from kbgym.gym.policy import Turn
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Event, Graded, Noted

FILE = "prequential.jsonl"
WINDOW = 50


class Measure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One graded question: predicted first, taught after. `em` alone is known where only right or wrong was said."""

    id: str
    iteration: int
    actions: int
    em: float
    f1: float | None = None


class Window(msgspec.Struct, frozen=True):
    """Means over consecutive questions; F1 over those whose gold is known."""

    first: int
    last: int
    f1: float | None
    em: float
    actions: float


def window(rows: Collection[Measure], first: int) -> Window:
    scored = [row.f1 for row in rows if row.f1 is not None]
    return Window(
        first,
        first + len(rows) - 1,
        sum(scored) / len(scored) if scored else None,
        sum(row.em for row in rows) / len(rows),
        sum(row.actions for row in rows) / len(rows),
    )


class MeasureFile:
    """The rows as JSON lines; brought into step with the trace when opened, then added to."""

    def __init__(self, folder: Path, rows: Sequence[Measure]) -> None:
        self._path = folder / FILE
        write_lines(self._path, rows)

    def add(self, rows: Sequence[Measure]) -> None:
        with self._path.open("ab") as out:
            out.write(b"".join(encode(row) + b"\n" for row in rows))


MOST = 5_000  # questions kept beside those that wait to be learnt from
MOST_TURNS = 500  # of these, those whose trajectory is at hand

State = Literal["answered", "graded", "learnt", "refused", "set aside"]


class Asked(msgspec.Struct, frozen=True):
    """One question. `state`: answered, graded (the backward pass is to come), learnt, refused by the gate, set aside.

    `client` asked it; only that client and curators may look at it.
    """

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
    client: str = ""


class Questions:
    """The latest questions by id, those to be learnt from, and the latest rows of the prequential measure."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self.clear()

    def clear(self) -> None:
        self.asked: OrderedDict[str, Asked] = OrderedDict()
        self.turns: OrderedDict[str, tuple[Turn, ...]] = OrderedDict()
        self.to_learn: dict[str, None] = {}  # graded and not yet taught, oldest first
        self._last: dict[str, int] = {}  # the number of each client's last lesson
        self.total = self.graded = self.set_aside = self._lessons = 0
        self.unwritten: list[Measure] = []  # for the file of measures
        self._recent: deque[Measure] = deque(maxlen=WINDOW)
        self._now: str | None = None

    def __call__(self, event: Event, store: Store, observation: Observation) -> None:
        match event:
            case Began(_, "forward", agent, question, text, 0):  # a training's passes have an epoch, and are no traffic
                self._begin(Asked(question, text, agent))
            case Noted(_, "asked", {"question": str(question), "by": str(client)}) if question in self.asked:
                self._change(question, client=client)
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
                self.to_learn[question] = None
                self._measure(Measure(question, iteration, self.asked[question].actions, em, f1))
            case Noted(iteration, "feedback", {"question": str(question), "right": bool(right)}):
                if question in self.asked:
                    self._change(question, right=right)
                    self._measure(Measure(question, iteration, self.asked[question].actions, float(right)))
            case Began(_, "backward", _, question) if question in self.asked:
                self._over(question, "learnt")
            case Noted(_, "gate", {"verdict": "quarantined", "question": str(question), "reason": str(reason)}):
                if question in self.asked:
                    self._over(question, "refused", reason)
            case Noted(_, "set aside", {"question": str(question), "reason": str(reason)}):
                if question in self.asked:
                    self.set_aside += 1
                    self._over(question, "set aside", reason)

    def rolling(self) -> Window | None:
        """The means of the last graded questions."""
        return window(self._recent, self.graded - len(self._recent) + 1) if self._recent else None

    def next_lesson(self) -> str | None:
        """What to learn from next: of the clients who wait, the one whose last lesson is longest ago, its oldest."""
        oldest: dict[str, str] = {}
        for id in self.to_learn:
            oldest.setdefault(self.asked[id].client, id)
        return oldest[min(oldest, key=lambda client: self._last.get(client, 0))] if oldest else None

    def _begin(self, asked: Asked) -> None:
        self._now = asked.id
        self.total += 1
        self.asked[asked.id] = asked
        self.turns[asked.id] = ()
        if len(self.turns) > MOST_TURNS:
            self.turns.popitem(last=False)
        if len(self.asked) > self._most + len(self.to_learn):
            oldest = next((id for id in self.asked if id not in self.to_learn), None)
            if oldest is not None:
                del self.asked[oldest]

    def _over(self, id: str, state: State, note: str = "") -> None:
        self.to_learn.pop(id, None)
        self._lessons += 1
        self._last[self.asked[id].client] = self._lessons
        self.turns.pop(id, None)
        self._change(id, state=state, note=note)

    def _change(self, id: str, **fields: object) -> None:
        self.asked[id] = msgspec.structs.replace(self.asked[id], **fields)

    def _measure(self, measure: Measure) -> None:
        self.graded += 1
        self._recent.append(measure)
        self.unwritten.append(measure)
