"""The small model as a reader: what it is told, in few words, and how its replies are read.

It was taught every rule, so it is told none: a line instead of a skill, tools without descriptions. How many actions are
left stands behind each result, not behind the last one alone, so that a pass only ever grows: what the server has read
once it never reads again. Before an answer it writes down what the answer rests on; those notes go no further.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from kbgym.actions import Action, Answer, Invalid, Search
from kbgym.agents.llm import LLMPolicy, read
from kbgym.agents.prompting import Skill, plain
from kbgym.canonical import decode, digest
from kbgym.llm.asking import Flawed
from kbgym.llm.values import Call, Message, Reply, Request, tool
from kbgym.policy import Forward, Turn, View
from kbgym.tools import Role

SYSTEM = "Find the answer in the store."
_TEXT = {"type": "string"}
# Grammars hold to the order in which a schema names its members, and let what is optional come last.
TOOLS = [
    tool("search", "", {"query": _TEXT, "page": {"type": "integer"}}),
    tool("read", "", {"id": _TEXT}),
    tool("answer", "", {"notes": _TEXT, "text": _TEXT}),
]
TOOLS[0]["function"]["parameters"]["required"] = ["query"]


class SmallPolicy(LLMPolicy):
    """One pass of the small model."""

    def _request(self, view: View) -> Request:
        return self._settings.request(SYSTEM, messages(view), TOOLS)

    def _read(self, reply: Reply, role: Role) -> Action | Flawed:
        return read(_without_notes(reply), role)


def skill() -> Skill:
    """For a run's settings and its trace: what the model is told is not a prompt of ours by name."""
    return Skill((), about=SYSTEM)


def messages(view: View) -> tuple[Message, ...]:
    """The question and every turn, as the model was taught to see them."""
    assert isinstance(view.task, Forward)
    budget = view.remaining + len(view.history)
    said = [Message("user", _left(view.task.question, budget))]
    for number, turn in enumerate(view.history, 1):
        call = call_of(turn, f"call_{number}")
        said += [Message("assistant", call=call), Message("tool", _left(turn.observation, budget - number), id=call.id)]
    return tuple(said)


def call_of(turn: Turn, id: str, notes: str = "") -> Call:
    """An action as the model writes it: arguments in the order of the schema, nothing that goes without saying."""
    match turn.action:
        case Invalid(name):
            return Call(name if name.isidentifier() else "invalid", "{}", id)
        case Search(query, 1):
            return Call("search", _json({"query": query}), id)
        case Answer(text):
            return Call("answer", _json({"notes": notes, "text": text}), id)
        case action:
            fields = msgspec.to_builtins(action)
            return Call(fields.pop("tool"), _json(fields), id)


def sample(question: str, turns: Sequence[Turn], budget: int, notes: str) -> dict[str, Any]:
    """A whole pass as the server renders it: `parts` are by turns what the model is shown and what it is to write.

    Every request of the pass is a beginning of it, so that one sample teaches all its steps.
    """
    *before, last = turns
    said = messages(View("reader", Forward(question), tuple(before), budget - len(before)))
    parts, shown = list[str](), f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"
    for message in (*said, Message("assistant", call=call_of(last, "", notes))):
        if message.call is None:
            shown += f"<|im_start|>{message.role}\n{message.text}<|im_end|>\n"
        else:
            parts += [f"{shown}<|im_start|>assistant\n", f">{message.call.name}\n{message.call.arguments};<|im_end|>"]
            shown = "\n"
    return {"parts": parts}


def _left(text: str, remaining: int) -> str:
    return f"{plain(text)}\n({remaining} left)"


def _json(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _without_notes(reply: Reply) -> Reply:
    if len(reply.calls) != 1 or reply.calls[0].name != "answer":
        return reply
    try:
        arguments = decode(reply.calls[0].arguments)
    except msgspec.DecodeError:
        return reply
    if isinstance(arguments, dict):
        arguments.pop("notes", None)
    call = msgspec.structs.replace(reply.calls[0], arguments=_json(arguments))
    return msgspec.structs.replace(reply, calls=(call,))


PROMPT_HASH = digest(SYSTEM.encode())
