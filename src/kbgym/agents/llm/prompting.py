"""Requests to a model from views: the skill, the task, the turns so far, and the budget as the last line.

Everything before the last lines is append-only within a pass, so that providers can cache it. Text from the store is
put between delimiters that it cannot contain itself.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from kbgym.agents.llm.values import THOUGHT, Call, Message
from kbgym.canonical import digest, encode
from kbgym.gym.actions import Action, Invalid, Read, Search
from kbgym.gym.policy import Backward, Forward, IndexTask, Lookup, Task, Turn, View
from kbgym.gym.tools import Role

WORDS = tomllib.loads((files("kbgym.agents.llm") / "prompts" / "words.toml").read_text(encoding="utf-8"))
# Curator prompts by strategy.
CURATION = {"paper": "curation", "class": "curation_class"}

NO_NEWS = 3  # pages
_MOST_TASKS, _MOST_KNOWN, _MOST_LOOKUPS = 8, 16, 4
# Delimiters and control tokens of chat templates, which text must not contain.
_MARKS = re.compile(r"<(?=/?observation)|<(?=\|)|<(?=/?s>|/?(?:start|end)_of_turn>|/?tool_)|\[(?=/?INST\])", re.I)


@cache
def prompt(name: str) -> str:
    """Return a prompt by its name."""
    return (files("kbgym.agents.llm") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


class Skill(msgspec.Struct, frozen=True):
    """The system prompt of a role: prompts by name, and the world's own description of what the store holds."""

    prompts: tuple[str, ...]
    about: str = ""

    @property
    def text(self) -> str:
        first, *rest = (prompt(name) for name in self.prompts)
        about = [f"## What this store holds\n\n{plain(self.about)}"] if self.about else []
        return "\n\n".join([first, *about, *rest])

    def with_notes(self, effort: str | None, role: Role) -> Skill:
        """Return the skill of a model with this effort: a reader with notes before its calls is told about them."""
        return Skill((*self.prompts, THOUGHT), self.about) if effort == THOUGHT and role == "reader" else self

    @property
    def hashes(self) -> dict[str, str]:
        about = {"about": digest(self.about.encode())} if self.about else {}
        return {name: prompt_hash(name) for name in self.prompts} | about


def skill_of(role: Role, strategy: str = "paper", about: str = "") -> Skill:
    """Return the prompts of a role: one fixed text for readers of any store; a curator's depend on the strategy."""
    return Skill(("retrieval",) if role == "reader" else (CURATION[strategy], "data"), about)


def prompt_hash(name: str) -> str:
    return digest(prompt(name).encode())


def as_data(text: str) -> str:
    """Return text from the store between delimiters; a delimiter inside it loses its bracket."""
    return f"<observation>\n{_MARKS.sub('‹', text)}\n</observation>"


def messages(view: View) -> tuple[Message, ...]:
    """Return the task and every turn the view still remembers."""
    turns: list[Message] = [Message("user", task_block(view.task))]
    for number, turn in enumerate(view.history, 1):
        call = call_of(turn.action, f"call_{number}")
        turns.append(Message("assistant", call=call))
        turns.append(Message("tool", as_data(turn.observation.text), id=call.id))
    return tuple(turns)


def tail(remaining: int) -> str:
    return f"Actions left: {remaining}."


def last_lines(view: View) -> str:
    """Return the lines that change from turn to turn: a reminder where the reader is stuck, then the budget."""
    reminder = _reminder(view) if view.role == "reader" else ""
    return "\n".join(filter(None, (reminder, tail(view.remaining))))


def choices(view: View) -> tuple[str, ...]:
    """Return the only tools that make sense now, or none for all: a search before anything, an answer at the end."""
    if view.role == "curator":
        return ()
    if not any(isinstance(turn.action, Search) for turn in view.history):
        return ("search",)
    return ("answer",) if view.remaining == 1 else ()


def _reminder(view: View) -> str:
    """Return the reminder for a stuck reader: to answer, after a repeated search or pages without new documents."""
    if view.remaining == 1:
        return "This is the last action: call `answer`."
    done = [(turn.action, {one.id for one in turn.observation.documents}) for turn in view.history]
    searches = [(action, ids) for action, ids in done if isinstance(action, Search)]
    if not searches or not isinstance(done[-1][0], Search | Read):
        return ""
    asked = [(" ".join(action.query.casefold().split()), action.page) for action, _ in searches]
    if isinstance(done[-1][0], Search) and asked[-1] in asked[:-1]:
        return "You have seen these results before: call `answer` now, or search with other words."
    last = done[-NO_NEWS:]
    before = {id for _, ids in done[:-NO_NEWS] for id in ids}
    if len(done) > NO_NEWS and all(ids <= before for _, ids in last):
        return "The last pages showed nothing new: call `answer` now with the best you have found."
    if len(asked) >= NO_NEWS and len({query for query, _ in asked[-NO_NEWS:]}) == 1:
        return "If these pages state the answer, call `answer` now; else search for a name they mention."
    return ""


def shown_result(observation: str, remaining: int) -> str:
    """Return the result of an action as text for an agent that plays over MCP."""
    return f"{as_data(observation)}\n{tail(remaining)}"


def told_of_pass(view: View, skill: Skill | None) -> str:
    """Return one text for an agent over MCP: the skill, the rules, the task, the turns so far.

    The skill is None if the agent has already seen it.
    """
    end = "answer" if view.role == "reader" else "done"
    rules = (
        "## How you play\n\nUse the tools of the MCP server `kbgym` and no others. Every result ends with how many "
        f"actions are left. `{end}` ends the pass; what you write besides is read by nobody."
    )
    so_far = ["What you did so far:", *_attempts(view.history)] if view.history else []
    before = [skill.text, rules] if skill is not None else []
    return "\n\n".join([*before, "# Your task", task_block(view.task), *so_far, tail(view.remaining)])


def task_block(task: Task) -> str:
    match task:
        case Forward(question):
            return f"Question: {plain(question)}"
        case Backward(question, forward, golds, f1, verdict, agenda):
            also = f" (also accepted: {'; '.join(map(plain, golds[1:]))})" if len(golds) > 1 else ""
            return "\n\n".join(
                [
                    f"Question: {plain(question)}",
                    "What the reader did:",
                    *_attempts(forward),
                    f"{WORDS['verdicts'][verdict]} Score (F1): {f1:.2f}.",
                    f"Correct answer: {plain(golds[0])}{also}",
                    "Make this need, in any words, cheaper to answer: build what is missing, extend what is partial, "
                    "change nothing if it is complete already.",
                    *_agenda(agenda, forward),
                ]
            )


def call_of(action: Action, id: str) -> Call:
    """Return the tool call for an action."""
    if isinstance(action, Invalid):
        # The observation says what was wrong; the arguments were not kept.
        return Call(re.sub(r"[^A-Za-z0-9_-]", "_", action.name) or "invalid", "{}", id)
    fields = msgspec.to_builtins(action)
    return Call(fields.pop("tool"), encode(fields).decode(), id)


def _agenda(index_tasks: tuple[IndexTask, ...], forward: tuple[Turn, ...]) -> list[str]:
    """Return the tasks of the agenda; each document is shown once."""
    if not index_tasks:
        return []
    visible = {document.id for turn in forward for document in turn.observation.documents}
    lines = [
        "After these, keys worth an index, the most useful first. What you see and cannot finish is not lost: a later "
        "pass will be shown it."
    ]
    for index_task in index_tasks[:_MOST_TASKS]:
        lines.append(f"- {plain(_task_line(index_task))}")
        unseen = [(id, text) for id, text in index_task.known if id not in visible]
        if unseen:
            lines.append(as_data("\n".join(f"[{id}] {text}" for id, text in unseen[:_MOST_KNOWN])))
        visible |= {id for id, _ in unseen}
    return ["\n".join(lines)]


def _task_line(task: IndexTask) -> str:
    """Return a task in words: the reason, what is known, the searches, the cost."""
    index = f"its index is [{task.index}], links: {len(task.linked)}" if task.index else "no index yet"
    parts = [f'"{task.text}" ({WORDS["reasons"][task.reason]})', index]
    if task.known:
        parts.append(f"belong to it and are not linked: {', '.join(f'[{id}]' for id, _ in task.known)}")
    if task.stale:
        parts.append(f"no longer belong to it and are linked: {', '.join(f'[{id}]' for id in task.stale)}")
    if task.lookups:
        rest = len(task.lookups) - _MOST_LOOKUPS
        searches = ", then ".join(map(_search, task.lookups[:_MOST_LOOKUPS]))
        parts.append(f"search for {searches}" + (f", and {rest} more" if rest > 0 else ""))
        parts.append(f"actions: {task.cost}, and one for each page more")
    else:
        parts.append(f"complete: {'link' if task.index else 'add and link'}, actions: {task.cost}")
    return "; ".join(parts)


def _search(lookup: Lookup) -> str:
    at = f'"{lookup.query}"' + (f", page {lookup.page}" if lookup.page > 1 else "")
    return at if lookup.members is None else f"{at} (the page before had {lookup.members or 'none'})"


def _attempts(turns: tuple[Turn, ...]) -> list[str]:
    calls = [call_of(turn.action, str(number)) for number, turn in enumerate(turns, 1)]
    said = [f"{call.id}. {call.name} {plain(call.arguments)}" for call in calls]
    return [f"{call}\n{as_data(turn.observation.text)}" for call, turn in zip(said, turns, strict=True)]


def plain(text: str) -> str:
    return _MARKS.sub("‹", text)
