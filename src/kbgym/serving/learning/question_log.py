"""Questions asked of a served store: open questions that clients are answering, and a log of answered ones.

An open question sees the store as it was when it was opened, despite later changes. The log follows the trace: after
a restart it holds the same questions, including those still to be learnt from, and the prequential measures (how well
questions were answered before anything was learnt from them). Both are bounded; the trace has every question.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from kbgym.gym.actions import Action, Answer, Error, Invalid, Observation, Search
from kbgym.gym.environment import Step
from kbgym.gym.episode import Transcript
from kbgym.gym.grading import normalise
from kbgym.gym.policy import Turn
from kbgym.gym.tools import parse
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Event, Graded, Noted
from kbgym.trace.live import Snapshot

WINDOW = 50  # questions of the rolling means
MOST_OPEN = 64  # open questions per client
MOST_WINDOWS = 100  # windows of graded questions kept


class Refusal(Exception):
    """A request that cannot be carried out; `kind` is missing, conflict, forbidden or invalid."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


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
    """A question that a client is answering, and the steps it has taken."""

    def __init__(self, id: str, question: str, client: str, base: Snapshot, budget: int) -> None:
        self.id, self.question, self.client, self.base, self.budget = id, question, client, base, budget
        self.environment = base.environment()
        self.steps: list[Step] = []

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
    def is_over(self) -> bool:
        return len(self.steps) >= self.budget or bool(self.steps and isinstance(self.steps[-1].action, Answer))

    @property
    def transcript(self) -> Transcript:
        last = self.steps[-1].action if self.steps else None
        if isinstance(last, Answer):
            return Transcript("reader", "answered", tuple(self.steps), answer=last.text)
        return Transcript("reader", "out_of_budget", tuple(self.steps))


class OpenQuestions:
    """Open questions by id. A client beyond its bound loses its own oldest question."""

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._open: OrderedDict[str, OpenQuestion] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, question: str, client: str, base: Snapshot, budget: int) -> OpenQuestion:
        own = [id for id, opened in self._open.items() if opened.client == client]
        for id in own[: max(0, len(own) + 1 - self._most)]:
            del self._open[id]
        made = OpenQuestion(new_id(), question, client, base, budget)
        self._open[made.id] = made
        return made

    def find(self, id: str, client: str) -> OpenQuestion:
        """Return a client's own question. Raise Refusal if it has none of that id."""
        found = self._open.get(id)
        if found is None or found.client != client:
            raise Refusal("missing", f"there is no open question {id[:80]!r}.")
        return found

    def close(self, id: str) -> None:
        self._open.pop(id, None)


# -- the log -------------------------------------------------------------------------------------------------------


class Measure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One graded question. Without an expected answer only `em` is known."""

    id: str
    iteration: int
    actions: int
    em: float
    f1: float | None = None
    first_page: bool | None = None


class Window(msgspec.Struct, frozen=True):
    """Means over consecutive questions; F1 over those with an expected answer."""

    first: int
    last: int
    f1: float | None
    em: float
    actions: float
    first_page: float | None = None


def window(rows: Collection[Measure], first: int) -> Window:
    scored = [row.f1 for row in rows if row.f1 is not None]
    seen = [row.first_page for row in rows if row.first_page is not None]
    return Window(
        first,
        first + len(rows) - 1,
        sum(scored) / len(scored) if scored else None,
        sum(row.em for row in rows) / len(rows),
        sum(row.actions for row in rows) / len(rows),
        sum(seen) / len(seen) if seen else None,
    )


MOST = 5_000  # answered questions kept beside those still to be learnt from
MOST_TURNS = 500  # questions whose trajectory is kept

State = Literal["open", "answered", "graded", "learnt", "refused", "set aside"]


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

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self.clear()

    def clear(self) -> None:
        self.asked: OrderedDict[str, Asked] = OrderedDict()
        self.turns: OrderedDict[str, tuple[Turn, ...]] = OrderedDict()
        self.to_learn: dict[str, None] = {}  # graded and not yet taught, oldest first
        self.total = self.graded = self.set_aside = 0
        self._recent: deque[Measure] = deque(maxlen=WINDOW)
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
            case Graded(iteration, question, golds, f1, em) if question in self.asked:
                self._change(question, golds=golds, f1=f1, em=em, state="graded")
                self.to_learn[question] = None
                on_page = _on_first_page(self.turns.get(question, ()), golds)
                self._measure(Measure(question, iteration, self.asked[question].actions, em, f1, on_page))
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
        return window(self._recent, self.graded - len(self._recent) + 1) if self._recent else None

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

    def _measure(self, measure: Measure) -> None:
        self.graded += 1
        self._recent.append(measure)
        if self.graded % WINDOW == 0:
            self.windows.append(window(self._recent, self.graded - WINDOW + 1))


def _on_first_page(turns: Sequence[Turn], golds: Sequence[str]) -> bool | None:
    """Return True if the first page of results states an expected answer, None if nothing was searched for."""
    pages = (normalise(turn.observation.text) for turn in turns if isinstance(turn.action, Search))
    first = next(pages, None)
    return None if first is None else any(f" {normalise(gold)} " in f" {first} " for gold in golds)
