"""Questions asked of a served store: open questions that clients are answering, and a log of answered ones.

An open question sees the store as it was when it was opened, despite later changes. The log follows the trace: after
a restart it holds the same questions, including those still to be learnt from, and the prequential measures (how well
questions were answered before anything was learnt from them). Both are bounded; the trace has every question.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

import msgspec

from kbgym.gym.actions import Action, Answer, Error, Invalid, Observation, Search
from kbgym.gym.environment import Step
from kbgym.gym.episode import Transcript, play
from kbgym.gym.grading import normalise
from kbgym.gym.policy import Agent, Backward, Forward, Turn
from kbgym.gym.tools import parse
from kbgym.serving.clients import Refusal
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Event, Graded, Noted, Phase
from kbgym.trace.live import Snapshot
from kbgym.training.lessons import Lesson
from kbgym.training.run import Settings

WINDOW = 50  # questions of the rolling means
MOST_OPEN = 64  # open questions per client
MOST_WINDOWS = 100  # windows of graded questions kept
MOST = 5_000  # answered questions kept beside those still to be learnt from
MOST_TURNS = 500  # questions whose trajectory is kept

State = Literal["open", "answered", "graded", "learnt", "refused", "set aside"]


def new_id() -> str:
    """Return an id that cannot be guessed."""
    return f"q-{secrets.token_urlsafe(12)}"


def plain_line(text: str, field: str) -> str:
    """Return a text if the tools accept it: one plain, non-empty line of limited length."""
    checked = parse("answer", {"text": text}, "reader")
    if isinstance(checked, Invalid):
        raise Refusal("invalid", checked.reason.replace("text", field, 1))
    return str(getattr(checked, "text", ""))


class OpenQuestion:
    """A question that is being answered on a snapshot: by an agent that plays it, or step by step by a client."""

    def __init__(self, id: str, question: str, client: str, base: Snapshot, settings: Settings) -> None:
        self.id, self.question, self.client, self.base = id, question, client, base
        self.budget, self._memory = settings.forward_budget, settings.memory
        self.environment = base.environment()
        self.steps: list[Step] = []

    async def play(self, phase: Phase, lesson: Lesson, agent: Agent, task: Forward | Backward) -> Transcript:
        """Have an agent play the forward pass."""
        return await play(agent(), self.environment, "reader", task, self.budget, self._memory)

    async def act(self, action: Action) -> Step:
        """Take a reader's action. Raise Refusal if the budget is spent."""
        if len(self.steps) >= self.budget:
            raise Refusal("conflict", f"question {self.id} has used its {self.budget} actions.")
        step = await self.environment.step(action, "reader")
        if isinstance(action, Answer) and isinstance(step.result, Error):
            raise Refusal("invalid", step.result.message)
        self.steps.append(step)
        return step

    @property
    def asked(self) -> Asked:
        return Asked(self.id, self.question, self.client, state="open", client=self.client)

    @property
    def is_over(self) -> bool:
        return len(self.steps) >= self.budget or bool(self.steps and isinstance(self.steps[-1].action, Answer))

    @property
    def transcript(self) -> Transcript:
        last = self.steps[-1].action if self.steps else None
        answer = last.text if isinstance(last, Answer) else None
        return Transcript("reader", "out_of_budget" if answer is None else "answered", tuple(self.steps), answer)


# -- the log -------------------------------------------------------------------------------------------------------


class GradedQuestion(NamedTuple):
    """The score of one question before anything was learnt from it."""

    f1: float
    em: float
    actions: int
    first_page: bool | None


class Window(msgspec.Struct, frozen=True):
    """Means over consecutive graded questions."""

    first: int
    last: int
    f1: float
    em: float
    actions: float
    first_page: float | None = None


def window(rows: Collection[GradedQuestion], last: int) -> Window:
    f1, em, actions, _ = (tuple(column) for column in zip(*rows, strict=True))
    seen = [row.first_page for row in rows if row.first_page is not None]
    first_page = fmean(seen) if seen else None
    return Window(last - len(rows) + 1, last, fmean(f1), fmean(em), fmean(actions), first_page)


class Asked(msgspec.Struct, frozen=True):
    """A question and its outcome.

    Args:
        state: `graded` questions await their backward pass; the gate `refused` it, or an error `set` it `aside`.
        client: the client that asked it; only that client and curators may see it.
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
    note: str = ""
    client: str = ""


class QuestionLog:
    """The latest questions by id, the queue to learn from, and the latest prequential measures."""

    lessons_only = True

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self.clear()

    def clear(self) -> None:
        self.asked: OrderedDict[str, Asked] = OrderedDict()
        self.turns: OrderedDict[str, tuple[Turn, ...]] = OrderedDict()
        self.to_learn: dict[str, None] = {}  # graded and not yet taught, oldest first
        self.total = self.graded = self.set_aside = 0
        self._recent: deque[GradedQuestion] = deque(maxlen=WINDOW)
        self.windows: deque[Window] = deque(maxlen=MOST_WINDOWS)
        self._now: str | None = None

    def __call__(self, event: Event, store: Store, observation: Observation) -> None:
        match event:
            case Began(_, "forward", agent, question, text, 0):  # passes of a training have an epoch
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
            case Graded(_, question, golds, f1, em) if question in self.asked:
                self._change(question, golds=golds, f1=f1, em=em, state="graded")
                self.to_learn[question] = None
                on_page = _on_first_page(self.turns.get(question, ()), golds)
                self.graded += 1
                self._recent.append(GradedQuestion(f1, em, self.asked[question].actions, on_page))
                if self.graded % WINDOW == 0:
                    self.windows.append(window(self._recent, self.graded))
            case Began(_, "backward", _, question) if question in self.asked:
                self._finish(question, "learnt")
            case Noted(_, "gate", {"verdict": "quarantined", "question": str(question), "reason": str(reason)}):
                if question in self.asked:
                    self._finish(question, "refused", reason)
            case Noted(_, "set aside", {"question": str(question), "reason": str(reason)}):
                if question in self.asked:
                    self.set_aside += 1
                    self._finish(question, "set aside", reason)

    def rolling(self) -> Window | None:
        """Return the means over the last graded questions."""
        return window(self._recent, self.graded) if self._recent else None

    def next_lesson(self) -> str | None:
        """Return the question that has waited longest for its lesson."""
        return next(iter(self.to_learn), None)

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

    def _finish(self, id: str, state: State, note: str = "") -> None:
        self.to_learn.pop(id, None)
        self.turns.pop(id, None)
        self._change(id, state=state, note=note)

    def _change(self, id: str, **fields: object) -> None:
        self.asked[id] = msgspec.structs.replace(self.asked[id], **fields)


def _on_first_page(turns: Sequence[Turn], golds: Sequence[str]) -> bool | None:
    """Return True if the first page of results states an expected answer, None if nothing was searched for."""
    pages = (normalise(turn.observation.text) for turn in turns if isinstance(turn.action, Search))
    first = next(pages, None)
    return None if first is None else any(f" {normalise(gold)} " in f" {first} " for gold in golds)
