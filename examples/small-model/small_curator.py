"""The small model as a curator: it works off the agenda, and is shown one index_task at a time.

What the reader did, the question and the gold are in the agenda already: it names the key, what was seen of it and what
is still to be searched for. The model searches, decides when a search is over and which documents belong, names the
index and links it; `done` is its word for the end of a task, and costs nothing. It never sees two tasks at once:
what it is shown stays short however long the pass is. Without an agenda it does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from small import TOOLS as READING
from small import NumberedTalk, SmallAgent, as_json, plainly, rendered

from kbgym.agents.llm.client import Flawed
from kbgym.agents.llm.policy import LLMPolicy, read
from kbgym.agents.llm.values import Call, Message, Reply, Request, tool
from kbgym.errors import BadInput
from kbgym.gym.actions import Action, Add, Done, LinkMany, Search
from kbgym.gym.policy import Backward, IndexTask, Lookup, Turn, View

SYSTEM = "Build the index."
_TEXT = {"type": "string"}
TOOLS = [
    READING[0],
    tool("add", "", {"text": _TEXT}),
    tool("link_many", "", {"source": _TEXT, "targets": _TEXT}),
    tool("done", "", {}),
]
_BRACKETED = re.compile(r"\[([^\]\s]+)\]")


class SmallCuratorPolicy(LLMPolicy):
    """One pass of the small model. Where a pass is resumed, what was done says which index_task it was at."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._at = -1
        self._taken = 0  # actions spent on this index_task

    async def act(self, view: View) -> Action:
        index_tasks = _errands(view)
        if self._at < 0:
            self._at, self._taken = _place(index_tasks, view.history)
        while self._at < len(index_tasks):
            action = await super().act(view)
            if not isinstance(action, Done):
                self._taken += 1
                return action
            self._at, self._taken = self._at + 1, 0
        return Done()

    def _request(self, view: View) -> Request:
        return self._settings.request(SYSTEM, self._talk(view).messages, TOOLS)

    def _read(self, reply: Reply, view: View) -> Action | Flawed:
        action = read(plainly(reply), view.role)
        if not isinstance(action, LinkMany):
            return action
        ids = self._talk(view).ids
        return LinkMany(ids.get(action.source, action.source), tuple(ids.get(one, one) for one in action.targets))

    def _talk(self, view: View) -> ErrandTalk:
        turns = view.history[len(view.history) - self._taken :]
        return ErrandTalk(_errands(view)[self._at], turns, view.remaining + len(turns))


class SmallCurator(SmallAgent):
    """Makes a policy for every pass."""

    system = SYSTEM
    plays = SmallCuratorPolicy


class ErrandTalk(NumberedTalk):
    """Work on one task as the model was taught to see it: a document that is linked already has a dash, no number."""

    def __init__(self, index_task: IndexTask, turns: Sequence[Turn], budget: int) -> None:
        super().__init__()
        self._linked = frozenset(index_task.linked)
        index = f"Index {self._number(index_task.index)}" if index_task.index else "New index"
        lines = [f"{index}: {index_task.text}"]
        self._known = [int(self._number(id)) for id, _ in index_task.known]
        if self._known:
            lines.append(f"Belong:{self._told(self._known)}")
        lines += map(_searched, index_task.lookups)
        said = [Message("user", self._shown("\n".join(lines), budget))]
        for number, turn in enumerate(turns, 1):
            call = self.call(turn.action, f"call_{number}")
            said.append(Message("assistant", call=call))
            said.append(Message("tool", self._shown(turn.observation.text, budget - number), id=call.id))
        self.messages = tuple(said)

    def call(self, action: Action, id: str) -> Call:
        """An action as the model writes it."""
        match action:
            case Search(query, page):
                return Call("search", as_json({"query": f" {query}"} | ({"page": page} if page > 1 else {})), id)
            case Add(text):
                return Call("add", as_json({"text": f" {text}"}), id)
            case LinkMany(source, targets):
                numbers = [self._numbers.get(one, one) for one in targets]
                told = self._told([int(one) for one in numbers if one.isdecimal()])
                return Call("link_many", as_json({"source": self._numbers.get(source, source), "targets": told}), id)
            case Done():
                return Call("done", "{}", id)
        return Call("invalid", "{}", id)

    def _told(self, numbers: Sequence[int]) -> str:
        """Numbers as they are written: a run of what was known before is its two ends, what was found stands alone."""
        words: list[tuple[int, int]] = []
        for number in numbers:
            if words and number == words[-1][1] + 1 and number in self._known:
                words[-1] = words[-1][0], number
            else:
                words.append((number, number))
        return "".join(f" {first}" if first == last else f" {first}-{last}" for first, last in words)

    def _number(self, id: str) -> str:
        return "-" if id in self._linked else super()._number(id)

    def _shown(self, text: str, remaining: int) -> str:
        inline = _BRACKETED.sub(lambda found: self._numbers.get(found[1], found[0]), text)
        return super()._shown(text if text.startswith("[") or "\n[" in text else inline, remaining)


def errand_sample(index_task: IndexTask, turns: Sequence[Turn], budget: int) -> dict[str, Any]:
    """Work on an index_task as the server renders it, as `small.sample` does a reader's pass; the last turn ends it."""
    *before, last = turns
    talk = ErrandTalk(index_task, before, budget)
    return {"parts": rendered((*talk.messages, Message("assistant", call=talk.call(last.action, ""))), SYSTEM)}


def _errands(view: View) -> tuple[IndexTask, ...]:
    if not isinstance(view.task, Backward):
        raise BadInput("a curator has a lesson to work on.")
    return view.task.agenda


def _place(index_tasks: Sequence[IndexTask], history: Sequence[Turn]) -> tuple[int, int]:
    """The index_task a pass was at, and how many actions it has spent on it."""
    at = taken = 0
    for turn in history:
        later = next((place for place in range(at, len(index_tasks)) if _is_of(turn.action, index_tasks[place])), at)
        at, taken = later, (taken if later == at else 0) + 1
    return at, taken


def _is_of(action: Action, index_task: IndexTask) -> bool:
    match action:
        case Search(query):
            return any(lookup.query == query for lookup in index_task.lookups)
        case Add(text):
            return text == index_task.text
        case LinkMany(source):
            return source == index_task.index
    return False


def _searched(lookup: Lookup) -> str:
    page = f", page {lookup.page}" if lookup.page > 1 else ""
    return f"Search: {lookup.query}{page}" + (" (once)" if lookup.most and lookup.page >= lookup.most else "")
