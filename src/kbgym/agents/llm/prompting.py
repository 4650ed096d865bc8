"""An index_task in words, as a curator that reads is told of it: what to write and search for, what is known.

Texts are for whoever renders them to mark as data: `told` gives plain sentences and, apart from them, the documents a
reader of them has not seen yet.


A view as a request to a model: the skill, the task, the turns so far, and the budget as the very last line.

Everything before the last line only ever grows within a pass, so that providers can cache it. Text out of the store is
put between marks that it cannot itself contain.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import cache
from importlib.resources import files

import msgspec

from kbgym.agents.llm.values import Call, Message
from kbgym.canonical import digest, encode
from kbgym.gym.actions import Action, Invalid
from kbgym.gym.policy import Backward, Forward, IndexTask, Lookup, Task, Turn, View
from kbgym.gym.tools import Role

_REASONS = {
    "named": "named in this question",
    "asked": "named in an earlier question",
    "incomplete": "its index misses documents that were seen",
    "doubted": "other documents imply one that its index misses",
    "changed": "facts under its index changed",
    "sibling": "of a kind that questions ask for",
}
_MOST_LOOKUPS = 4


def told(index_task: IndexTask, visible: Container[str] = ()) -> tuple[str, list[tuple[str, str]]]:
    """One line about an index_task, and the documents it speaks of that are not `visible` already, as (id, text)."""
    parts = [f'"{index_task.text}" ({_REASONS[index_task.reason]})']
    parts.append(
        f"its index is [{index_task.index}], {_many(len(index_task.linked), 'link')}"
        if index_task.index
        else "no index yet"
    )
    if index_task.known:
        parts.append(f"belong to it and are not linked: {', '.join(f'[{id}]' for id, _ in index_task.known)}")
    if index_task.lookups:
        rest = len(index_task.lookups) - _MOST_LOOKUPS
        searches = ", then ".join(map(_search, index_task.lookups[:_MOST_LOOKUPS]))
        parts.append(f"search for {searches}" + (f", and {rest} more" if rest > 0 else ""))
        parts.append(f"{index_task.cost} actions, and one for each page more")
    else:
        what = "link" if index_task.index else "add and link"
        parts.append(f"complete: {what}, {_many(index_task.cost, 'action')}")
    return "; ".join(parts), [(id, text) for id, text in index_task.known if id not in visible]


def _search(lookup: Lookup) -> str:
    at = f'"{lookup.query}"' + (f", page {lookup.page}" if lookup.page > 1 else "")
    return at if lookup.members is None else f"{at} (the page before had {lookup.members or 'none'})"


def _many(count: int, one: str) -> str:
    return f"{count} {one}" + ("" if count == 1 else "s")


# What a curator is told, by strategy.
CURATION = {"paper": "curation", "class": "curation_class"}

_VERDICTS = {
    "out of budget": "It ran out of actions before it answered.",
    "wrong": "It answered wrongly.",
    "right": "It answered correctly.",
}
_MOST_ERRANDS, _MOST_KNOWN = 8, 16
# What could end the data or pass for a chat template's own marks.
_MARKS = re.compile(r"<(?=/?observation)|<(?=\|)|<(?=/?s>|/?(?:start|end)_of_turn>|/?tool_)|\[(?=/?INST\])", re.I)


@cache
def prompt(name: str) -> str:
    """A prompt of ours, by name."""
    return (files("kbgym.agents.llm") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


class Skill(msgspec.Struct, frozen=True):
    """What a role is told before anything else: prompts by name, and what the store holds, in its world's own words."""

    prompts: tuple[str, ...]
    about: str = ""

    @property
    def text(self) -> str:
        first, *rest = (prompt(name) for name in self.prompts)
        about = [f"## What this store holds\n\n{plain(self.about)}"] if self.about else []
        return "\n\n".join([first, *about, *rest])

    @property
    def hashes(self) -> dict[str, str]:
        found = {name: prompt_hash(name) for name in self.prompts}
        return {**found, "about": digest(self.about.encode())} if self.about else found


def skill_of(role: Role, strategy: str = "paper", about: str = "", indexes: bool = True) -> Skill:
    """The prompts of a role: a curator's follow the strategy, a reader's tell of indexes where there may be some."""
    if role == "reader":
        return Skill(("retrieval", *(["retrieval_indexes"] if indexes else []), "data"), about)
    return Skill((CURATION[strategy], "data"), about)


def prompt_hash(name: str) -> str:
    return digest(prompt(name).encode())


def as_data(text: str) -> str:
    """Text out of the store, marked as such; a mark inside it loses its bracket."""
    return f"<observation>\n{_MARKS.sub('‹', text)}\n</observation>"


def messages(view: View) -> tuple[Message, ...]:
    """The task and every turn the view still remembers."""
    turns: list[Message] = [Message("user", task_block(view.task))]
    for number, turn in enumerate(view.history, 1):
        call = call_of(turn.action, f"call_{number}")
        turns.append(Message("assistant", call=call))
        turns.append(Message("tool", as_data(turn.observation.text), id=call.id))
    return tuple(turns)


def tail(remaining: int) -> str:
    return f"Actions left: {remaining}."


def shown_result(observation: str, remaining: int) -> str:
    """What came back of an action, for whoever plays over MCP."""
    return f"{as_data(observation)}\n{tail(remaining)}"


def told_of_pass(view: View, skill: Skill | None) -> str:
    """Everything an agent over MCP is told of a pass, as one text: the skill, the rules, the task, what is done.

    Without a skill it is one who was told before.
    """
    end = "answer" if view.role == "reader" else "done"
    rules = (
        "## How you play\n\nUse the tools of the MCP server `kbgym` and no others. Every result ends with how many "
        f"actions are left. `{end}` ends the pass; what you write besides is read by nobody."
    )
    done = [
        f"{number}. {call.name} {call.arguments}\n{as_data(turn.observation.text)}"
        for number, turn in enumerate(view.history, 1)
        for call in [call_of(turn.action, "")]
    ]
    so_far = ["What you did so far:", *done] if done else []
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
                    *(_attempt(number, turn) for number, turn in enumerate(forward, 1)),
                    f"{_VERDICTS[verdict]} Score (F1): {f1:.2f}.",
                    f"Correct answer: {plain(golds[0])}{also}",
                    "Find the keys this question mentions. Where an index would have saved the reader actions, see to "
                    "it that there is a complete one: build what is missing, extend what is partial, change nothing "
                    "where it is complete.",
                    *_agenda(agenda, forward),
                ]
            )


def call_of(action: Action, id: str) -> Call:
    """An action as the tool call that asked for it."""
    if isinstance(action, Invalid):
        # What was wrong with it is in the observation; its arguments were not kept.
        return Call(re.sub(r"[^A-Za-z0-9_-]", "_", action.name) or "invalid", "{}", id)
    fields = msgspec.to_builtins(action)
    return Call(fields.pop("tool"), encode(fields).decode(), id)


def _agenda(index_tasks: tuple[IndexTask, ...], forward: tuple[Turn, ...]) -> list[str]:
    """What earlier passes saw and left, if the strategy keeps count; a document is told once."""
    if not index_tasks:
        return []
    visible = {document.id for turn in forward for document in turn.observation.documents}
    lines = [
        "After these, keys worth an index, the most useful first. What you see and cannot finish is not lost: a later "
        "pass will be shown it."
    ]
    for index_task in index_tasks[:_MOST_ERRANDS]:
        line, unseen = told(index_task, visible)
        lines.append(f"- {plain(line)}")
        if unseen:
            lines.append(as_data("\n".join(f"[{id}] {text}" for id, text in unseen[:_MOST_KNOWN])))
        visible |= {id for id, _ in unseen}
    return ["\n".join(lines)]


def _attempt(number: int, turn: Turn) -> str:
    call = call_of(turn.action, "")
    return f"{number}. {call.name} {plain(call.arguments)}\n{as_data(turn.observation.text)}"


def plain(text: str) -> str:
    return _MARKS.sub("‹", text)
