"""Playing by hand: whoever plays sees exactly what a model would be sent, and chooses one call.

`hand` asks at the terminal. `hand:FOLDER` writes every request to a numbered file there and waits for the reply beside
it, so that another program, or a person with an editor, can play: `0001.request.json` holds the system text, the
messages, the tools and the last line; `0001.reply.json` is {"tool": NAME, "arguments": {...}}. A reply that is no valid
action is answered in `0001.error.txt` and waited for again. Over MCP it is `conversation.py` that asks. Transcripts are
those of any other agent.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from kbgym.agents.llm.asking import Flawed
from kbgym.agents.llm.policy import read
from kbgym.agents.llm.prompting import Skill, messages, tail
from kbgym.agents.llm.values import Call, Message, Reply
from kbgym.canonical import decode, pretty
from kbgym.errors import BadInput
from kbgym.gym.actions import Action
from kbgym.gym.policy import View
from kbgym.gym.tools import openai_tools, tools_of

_LOOK_AGAIN = 0.05  # seconds


class Front(Protocol):
    """Where one pass is played: it shows a view, or what was wrong with the last reply, and gives the next reply."""

    async def ask(self, view: View, skill: Skill, error: str) -> Reply | None: ...


class HandAgent:
    """Makes a policy for every pass. Whoever plays does so one pass after the other, unless `at_once` says more."""

    def __init__(self, skill: Skill, front: Callable[[], Front], at_once: int = 1) -> None:
        self._skill, self._front, self.at_once = skill, front, at_once

    def __call__(self) -> HandPolicy:
        return HandPolicy(self._skill, self._front())


class HandPolicy:
    """One pass played by hand."""

    def __init__(self, skill: Skill, front: Front) -> None:
        self._skill, self._front = skill, front

    async def act(self, view: View) -> Action:
        error = ""
        while True:
            reply = await self._front.ask(view, self._skill, error)
            unread = Flawed("the reply is no JSON object with tool and arguments.")
            action = read(reply, view.role) if reply is not None else unread
            if not isinstance(action, Flawed):
                return action
            error = action.reason


def is_hand(name: str) -> bool:
    return name == "hand" or name.startswith("hand:")


def refuse_hand(names: Iterable[str]) -> None:
    """Where exams are compared, every pass must stand alone; whoever plays by hand remembers the one before."""
    if hand := next(filter(is_hand, names), None):
        raise BadInput(f"{hand} remembers earlier questions, so its exams are compared with none; use `kbgym exam`.")


def hand_agent(name: str, skill: Skill) -> HandAgent:
    """`hand`, or `hand:FOLDER`: the passes of one folder share its numbers."""
    where = name.partition(":")[2]
    if not where:
        return HandAgent(skill, AtTerminal)
    folder = Path(where)
    folder.mkdir(parents=True, exist_ok=True)
    taken = [int(file.name[:4]) for file in folder.glob("[0-9][0-9][0-9][0-9].request.json")]
    numbers = itertools.count(max(taken, default=0) + 1)
    return HandAgent(skill, lambda: InFolder(folder, numbers), at_once=16)


class AtTerminal:
    """A person who reads and types."""

    async def ask(self, view: View, skill: Skill, error: str) -> Reply | None:
        if error:
            print(f"That was no action: {error}")
        else:
            print("", messages(view)[-1].text, sep="\n")
        print(f"{tail(view.remaining)} Tools: {', '.join(tool.name for tool in tools_of(view.role))}")
        try:
            line = await asyncio.to_thread(input, 'tool {"argument": ...} > ')
        except EOFError:
            raise BadInput("nobody is playing: standard input ended.") from None
        name, _, arguments = line.strip().partition(" ")
        return Reply(calls=(Call(name, arguments or "{}", "hand"),))


class InFolder:
    """Whoever answers in a folder."""

    def __init__(self, folder: Path, numbers: Iterator[int]) -> None:
        self._folder, self._numbers = folder, numbers

    async def ask(self, view: View, skill: Skill, error: str) -> Reply | None:
        if not error:
            self._number = next(self._numbers)
        base = self._folder / f"{self._number:04}"
        asked, answer, trouble = (base.with_suffix(end) for end in (".request.json", ".reply.json", ".error.txt"))
        if error:
            answer.unlink(missing_ok=True)
            trouble.write_text(error + "\n", encoding="utf-8")
        else:
            request: dict[str, Any] = {
                "number": self._number,
                "role": view.role,
                "system": skill.text,
                "messages": [_shown(message) for message in messages(view)],
                "tail": tail(view.remaining),
                "tools": openai_tools(view.role),
            }
            scratch = base.with_suffix(".tmp")
            scratch.write_text(pretty(request), encoding="utf-8")
            scratch.replace(asked)
        while not answer.exists():
            await asyncio.sleep(_LOOK_AGAIN)
        return _reply(answer.read_bytes())


def _shown(message: Message) -> dict[str, Any]:
    plain = {"role": message.role, "content": message.text}
    if message.call is not None:
        plain["call"] = f"{message.call.name} {message.call.arguments}"
    return plain


def _reply(data: bytes) -> Reply | None:
    try:
        said = decode(data)
        return Reply(calls=(Call(str(said["tool"]), json.dumps(said.get("arguments", {})), "hand"),))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return None
