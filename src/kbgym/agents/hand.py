"""Playing by hand: whoever plays sees exactly what a model would be sent, and chooses one call.

`hand` asks at the terminal. `hand:FOLDER` writes every request to a numbered file there and waits for the reply beside
it, so that another program, or a person with an editor, can play: `0001.request.json` holds the system text, the
messages, the tools and the last line; `0001.reply.json` is {"tool": NAME, "arguments": {...}}. A reply that is no valid
action is answered in `0001.error.txt` and waited for again. Transcripts are those of any other agent.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kbgym.actions import Action
from kbgym.agents.llm import read
from kbgym.agents.prompting import Skill, messages, tail
from kbgym.canonical import pretty
from kbgym.errors import BadInput
from kbgym.llm.asking import Flawed
from kbgym.llm.values import Call, Message, Reply
from kbgym.policy import View
from kbgym.tools import Role, openai_tools

_LOOK_AGAIN = 0.05  # seconds


class HandAgent:
    """Makes a policy for every pass; the passes of one folder share its numbers."""

    def __init__(self, name: str, role: Role, skill: Skill) -> None:
        where = name.partition(":")[2]
        self._folder = Path(where) if where else None
        self._role, self._skill = role, skill
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            taken = [int(file.name[:4]) for file in self._folder.glob("[0-9][0-9][0-9][0-9].request.json")]
            self._numbers: Iterator[int] = itertools.count(max(taken, default=0) + 1)

    def __call__(self) -> HandPolicy:
        if self._folder is None:
            return HandPolicy(self._skill, self._at_terminal)
        return HandPolicy(self._skill, self._in_folder)

    async def _in_folder(self, request: dict[str, Any]) -> Reply | None:
        """Write a request and wait for its reply; called again with an error, wait for another reply."""
        assert self._folder is not None
        if "number" not in request:
            request["number"] = next(self._numbers)
        base = self._folder / f"{request['number']:04}"
        asked, answer, trouble = (base.with_suffix(end) for end in (".request.json", ".reply.json", ".error.txt"))
        if error := request.pop("error", None):
            answer.unlink(missing_ok=True)
            trouble.write_text(error + "\n", encoding="utf-8")
        else:
            scratch = base.with_suffix(".tmp")
            scratch.write_text(pretty(request), encoding="utf-8")
            scratch.replace(asked)
        while not answer.exists():
            await asyncio.sleep(_LOOK_AGAIN)
        return _reply(answer.read_bytes())

    async def _at_terminal(self, request: dict[str, Any]) -> Reply | None:
        if error := request.pop("error", None):
            print(f"That was no action: {error}")
        else:
            new = request["messages"] if len(request["messages"]) == 1 else request["messages"][-1:]
            print("", *(message["content"] for message in new), sep="\n")
        print(f"{request['tail']} Tools: {', '.join(tool['function']['name'] for tool in request['tools'])}")
        try:
            line = await asyncio.to_thread(input, 'tool {"argument": ...} > ')
        except EOFError:
            raise BadInput("nobody is playing: standard input ended.") from None
        name, _, arguments = line.strip().partition(" ")
        return Reply(calls=(Call(name, arguments or "{}", "hand"),))


class HandPolicy:
    """One pass played by hand."""

    def __init__(self, skill: Skill, ask: Callable[[dict[str, Any]], Awaitable[Reply | None]]) -> None:
        self._skill, self._ask = skill, ask

    async def act(self, view: View) -> Action:
        request: dict[str, Any] = {
            "role": view.role,
            "system": self._skill.text,
            "messages": [_shown(message) for message in messages(view)],
            "tail": tail(view.remaining),
            "tools": openai_tools(view.role),
        }
        while True:
            reply = await self._ask(request)
            unread = Flawed("the reply is no JSON object with tool and arguments.")
            action = read(reply, view.role) if reply is not None else unread
            if not isinstance(action, Flawed):
                return action
            request["error"] = action.reason


def _shown(message: Message) -> dict[str, Any]:
    plain = {"role": message.role, "content": message.text}
    if message.call is not None:
        plain["call"] = f"{message.call.name} {message.call.arguments}"
    return plain


def _reply(data: bytes) -> Reply | None:
    try:
        said = msgspec.json.decode(data)
        return Reply(calls=(Call(str(said["tool"]), json.dumps(said.get("arguments", {})), "hand"),))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return None
