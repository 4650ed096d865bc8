"""The small model as a reader: what it is told, in few words, and how its replies are read.

It was taught every rule, so it is told none: a line instead of a skill, tools without descriptions. How many actions
are left stands behind each result, not behind the last one alone, so that a pass only ever grows: what the server has
read once it never reads again. Before an answer it writes down what that rests on; those notes go no further. Whatever
it copies has a space before it, as where it was read: without one the same word is other tokens, and must be spelt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from kbgym.agents.llm.client import Flawed
from kbgym.agents.llm.connect import Models
from kbgym.agents.llm.policy import LLMAgent, LLMPolicy, read
from kbgym.agents.llm.prompting import Skill, plain
from kbgym.agents.llm.values import Call, Message, Reply, Request, tool
from kbgym.canonical import decode
from kbgym.errors import BadInput
from kbgym.gym.actions import Action, Answer, Invalid, Read, Search
from kbgym.gym.policy import Forward, Turn, View
from kbgym.gym.tools import Role

SYSTEM = "Find the answer in the store."
_TEXT = {"type": "string"}
_ID = re.compile(r"^\[([^\]\n]+)\] ", re.MULTILINE)
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
        return self._settings.request(SYSTEM, SmallTalk(view).messages, TOOLS)

    def _read(self, reply: Reply, view: View) -> Action | Flawed:
        action = read(plainly(reply), view.role)
        return Read(SmallTalk(view).ids.get(action.id, action.id)) if isinstance(action, Read) else action


class SmallAgent(LLMAgent):
    """Makes a policy for every pass; one plays after the other, as the server keeps the text of one."""

    at_once = 1
    system: ClassVar = SYSTEM
    plays: ClassVar[type[LLMPolicy]] = SmallPolicy

    def __init__(self, models: Models, name: str, role: Role) -> None:
        super().__init__(models, name, role, skill=Skill((), about=self.system))
        self.policy = self.plays


class NumberedTalk:
    """What is said in a pass, with numbers for documents; `ids` are the documents by the numbers they were given.

    Documents are numbered as they come: a number is a word or two of a model's, an id seven.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    @property
    def ids(self) -> dict[str, str]:
        return {number: id for id, number in self._numbers.items()}

    def _number(self, id: str) -> str:
        return self._numbers.setdefault(id, str(len(self._numbers) + 1))

    def _shown(self, text: str, remaining: int) -> str:
        numbered = _ID.sub(lambda found: f"{self._number(found[1])} ", text)
        return f"{plain(numbered)}\n({remaining} left)"


class SmallTalk(NumberedTalk):
    """A reader's pass as the model was taught to see it."""

    def __init__(self, view: View) -> None:
        assert isinstance(view.task, Forward)
        super().__init__()
        budget = view.remaining + len(view.history)
        said = [Message("user", self._shown(view.task.question, budget))]
        for number, turn in enumerate(view.history, 1):
            call = self.call(turn.action, f"call_{number}")
            said.append(Message("assistant", call=call))
            said.append(Message("tool", self._shown(turn.observation.text, budget - number), id=call.id))
        self.messages = tuple(said)

    def call(self, action: Action, id: str, notes: str = "") -> Call:
        """An action as the model writes it: arguments in the order of the schema, nothing that goes without saying."""
        match action:
            case Invalid(name):
                return Call(name if name.isidentifier() else "invalid", "{}", id)
            case Search(query, page):
                return Call("search", as_json({"query": f" {query}"} | ({"page": page} if page > 1 else {})), id)
            case Answer(text):
                return Call("answer", as_json({"notes": notes and f" {notes}", "text": f" {text}"}), id)
            case Read(document):
                return Call("read", as_json({"id": self._numbers.get(document, document)}), id)
        raise BadInput(f"a reader has no tool {action.__struct_config__.tag!r}.")


def sample(question: str, turns: Sequence[Turn], budget: int, notes: str) -> dict[str, Any]:
    """A whole pass as the server renders it: `parts` are by turns what the model is shown and what it is to write.

    Every request of the pass is a beginning of it, so that one sample teaches all its steps.
    """
    *before, last = turns
    talk = SmallTalk(View("reader", Forward(question), tuple(before), budget - len(before)))
    return {"parts": rendered((*talk.messages, Message("assistant", call=talk.call(last.action, "", notes))))}


def rendered(messages: Sequence[Message], system: str = SYSTEM) -> list[str]:
    """What the server's template makes of a pass: by turns what is shown and what was called, or is to be."""
    parts, shown = list[str](), f"<|im_start|>system\n{system}<|im_end|>\n"
    for message in messages:
        if message.call is None:
            shown += f"<|im_start|>{message.role}\n{message.text}<|im_end|>\n"
        else:
            parts += [f"{shown}<|im_start|>assistant\n>", f"{message.call.name}\n{message.call.arguments};<|im_end|>"]
            shown = "\n"
    return parts if shown == "\n" else [*parts, f"{shown}<|im_start|>assistant\n>"]


def as_json(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False)


def plainly(reply: Reply) -> Reply:
    """A call without what is the model's own: its notes, and the space before a text."""
    if len(reply.calls) != 1:
        return reply
    try:
        arguments = decode(reply.calls[0].arguments)
    except msgspec.DecodeError:
        return reply
    if isinstance(arguments, dict):
        arguments.pop("notes", None)
        if isinstance(targets := arguments.get("targets"), str):
            arguments["targets"] = _listed(targets)
        arguments = {name: value.strip() if isinstance(value, str) else value for name, value in arguments.items()}
    call = msgspec.structs.replace(reply.calls[0], arguments=as_json(arguments))
    return msgspec.structs.replace(reply, calls=(call,))


def _listed(numbers: str) -> list[str]:
    """Numbers one by one: "1-3 7" are four."""
    found: list[str] = []
    for word in numbers.split():
        first, _, last = word.partition("-")
        run = first.isdecimal() and last.isdecimal() and int(first) <= int(last) < int(first) + 1_000
        found += map(str, range(int(first), int(last) + 1)) if run else [word]
    return found
