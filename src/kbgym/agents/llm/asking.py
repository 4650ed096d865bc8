"""A model asked until its reply can be used: what policies, the judge and the writer share.

A reply is read by a function that gives a value or says what is wrong with it. How often a flawed reply is asked for
again, and in what words, is the caller's to say. An outage, a cap and a prompt that is too long pass through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec

from kbgym.agents.llm.client import ModelClient
from kbgym.agents.llm.connect import ModelSettings
from kbgym.agents.llm.values import Message, Reply, Request, Usage
from kbgym.canonical import decode

T = TypeVar("T")


class Flawed(msgspec.Struct, frozen=True):
    """A reply that cannot be used, and why in one sentence."""

    reason: str


ReadReply: TypeAlias = Callable[[Reply], T | Flawed]


class Asker:
    """One model and what it is asked with. `usage` is what was used through this object."""

    def __init__(self, client: ModelClient, settings: ModelSettings) -> None:
        self.usage = Usage()
        self._client = client
        self._settings = settings

    @property
    def name(self) -> str:
        """The model's name; for a cassette, that of the model that was recorded."""
        return self._client.name

    async def until_valid(
        self,
        request: Request,
        read: ReadReply[T],
        tries: int,
        correction: Callable[[str], str] | None = None,
        quoted: int = 400,
    ) -> T | Flawed:
        """The value of the first reply that has one, or the flaw of the last of so many `tries`.

        `correction` makes what the model is told out of a flaw, after as much of its reply as `quoted` allows; without
        it the same request is made again.
        """
        while True:
            reply = await self._client.ask(request)
            self.usage += Usage.of(reply)
            value = read(reply)
            if not isinstance(value, Flawed):
                return value
            self.usage += Usage(malformed=1)
            self._client.count_malformed()
            tries -= 1
            if tries < 1:
                return value
            if correction is not None:
                told = (Message("assistant", _quoted(reply, quoted)), Message("user", correction(value.reason)))
                request = msgspec.structs.replace(request, messages=request.messages + told)


def read_call(reply: Reply, name: str, type: type[T]) -> T | Flawed:
    """The arguments of the one call a reply should hold."""
    if len(reply.calls) != 1 or reply.calls[0].name != name:
        cut = " before it was cut off" if reply.finish == "length" else ""
        return Flawed(f"it was not one call of {name}{cut}.")
    try:
        return decode(reply.calls[0].arguments, type)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        return Flawed(f"the arguments of {name} do not fit: {error}.")


def _quoted(reply: Reply, most: int) -> str:
    calls = "\n".join(f"{call.name} {call.arguments}" for call in reply.calls)
    said = "\n".join(part for part in (reply.text.strip(), calls) if part)
    return f"{said[:most]} [...]" if len(said) > most else said or "(nothing)"
