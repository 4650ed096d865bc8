"""Requests, replies and usage of a model, independent of the provider's protocol.

A reply's `sent` records how the request was sent (accepted settings, tool calls or a schema). It is kept apart from the
request, so that a request has the same hash for every provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from kbgym.canonical import digest_of


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call as a model wrote it: the arguments are its own text, JSON or not."""

    name: str
    arguments: str
    id: str = ""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn: a user's text, an assistant's text or call, or the result of the call with this `id`."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    call: Call | None = None
    id: str = ""

    def as_chat(self) -> dict[str, Any]:
        """Return the message in OpenAI's format."""
        if self.call is not None:
            function = {"name": self.call.name, "arguments": self.call.arguments}
            called = {"id": self.call.id, "type": "function", "function": function}
            return {"role": "assistant", "content": self.text or None, "tool_calls": [called]}
        if self.role == "tool":
            return {"role": "tool", "tool_call_id": self.id, "content": self.text}
        return {"role": self.role, "content": self.text}


class Request(msgspec.Struct, frozen=True):
    """One request to a model. `tail` ends the last message and is the only part that changes from turn to turn."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...]
    tail: str = ""
    max_tokens: int = 12_000
    temperature: float | None = None
    effort: str | None = None
    # Of a request that is sent as a schema: a short thought before the call, and the only tools it may call now.
    thought: bool = False
    choices: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        left_out = {name for name in ("thought", "choices") if not getattr(self, name)}
        return digest_of({name: value for name, value in msgspec.to_builtins(self).items() if name not in left_out})


THOUGHT = "thought"  # an effort: notes before each call


class ModelSettings(msgspec.Struct, frozen=True):
    """The settings of a model's requests, kept in the trace. `effort` may be "thought", see `Request.thought`."""

    model: str
    temperature: float | None
    effort: str | None
    max_tokens: int

    def request(
        self, system: str, messages: tuple[Message, ...], tools: Sequence[dict[str, Any]], tail: str = ""
    ) -> Request:
        """Return a request to this model with these settings."""
        thought = self.effort == THOUGHT
        sent = (self.max_tokens, self.temperature, None if thought else self.effort)
        return Request(self.model, system, messages, tuple(tools), tail, *sent, thought)


class Sent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings sent to the provider; `refused` names those it rejected."""

    model: str
    served: str = ""
    way: Literal["tools", "schema"] = "tools"
    temperature: float | None = None
    effort: str | None = None
    max_tokens: int | None = None
    refused: tuple[str, ...] = ()


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reply and its usage. `prompt` counts all prompt tokens, `cached` those of them read from a cache."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = ""
    prompt: int = 0
    cached: int = 0
    cache_writes: int = 0
    completion: int = 0
    reasoning: int = 0
    retries: int = 0
    cost: float | None = None
    sent: Sent | None = None


class Usage(msgspec.Struct, frozen=True):
    """The usage of a pass or a run. `cost` is in dollars, and None if any request's price is unknown."""

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0
    malformed: int = 0
    retries: int = 0
    cost: float | None = 0.0
    sent: tuple[Sent, ...] = ()

    @property
    def tokens(self) -> int:
        return self.prompt + self.completion

    @property
    def malformed_rate(self) -> float:
        return self.malformed / self.requests if self.requests else 0.0

    @staticmethod
    def of(reply: Reply) -> Usage:
        counts = {name: getattr(reply, name) for name in ("prompt", "cached", "completion", "reasoning", "retries")}
        return Usage(requests=1, **counts, cost=reply.cost, sent=(reply.sent,) if reply.sent else ())

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            **{name: getattr(self, name) + getattr(other, name) for name in _COUNTS},
            cost=None if self.cost is None or other.cost is None else self.cost + other.cost,
            sent=self.sent + tuple(sent for sent in other.sent if sent not in self.sent),
        )


_COUNTS = ("requests", "prompt", "cached", "completion", "reasoning", "malformed", "retries")


def tool(name: str, description: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool whose arguments are all required."""
    parameters = object_schema(properties)
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
