"""Questions that clients' own agents are answering: each sees the store as it was when its question was opened.

A pass has the reader's budget, whoever plays it. A client that opens more questions than it may loses its own oldest,
never another's. Ids cannot be guessed.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict

from kbgym.gym.actions import Action, Answer, Error
from kbgym.gym.environment import Step
from kbgym.gym.episode import Transcript
from kbgym.trace.snapshot import Snapshot

MOST_OPEN = 64  # a client


class Refusal(Exception):
    """What was asked about a question cannot be done; `kind` is missing, conflict, forbidden or invalid."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def new_id() -> str:
    """An id nobody else can name."""
    return f"q-{secrets.token_urlsafe(12)}"


class OpenQuestion:
    """A question under way, and what was done for it so far."""

    def __init__(self, id: str, question: str, client: str, base: Snapshot, budget: int) -> None:
        self.id, self.question, self.client, self.base, self.budget = id, question, client, base, budget
        self.environment = base.environment()
        self.steps: list[Step] = []

    async def act(self, action: Action) -> Step:
        """One action of the reader's; past the budget there is none."""
        if len(self.steps) >= self.budget:
            raise Refusal("conflict", f"the {self.budget} actions of question {self.id} are spent.")
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
    """Open questions by id, so many a client."""

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
        """A client's own question; another's is not there for it."""
        found = self._open.get(id)
        if found is None or found.client != client:
            raise Refusal("missing", f"there is no open question {id[:80]!r}.")
        return found

    def close(self, id: str) -> None:
        self._open.pop(id, None)
