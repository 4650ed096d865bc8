"""Recorded passes as chat transcripts for fine-tuning, one JSON line each: `{"messages": [...], "tools": [...]}`.

A pass is a chain of requests, each of which extends the previous one; the last contains the whole pass. Corrections,
the replies they correct, and passes that ended without a valid reply are omitted. Transcripts have the format of TRL's
chat templates: arguments are objects, the content of a call is "", and each message that was answered ends with the
last lines of its request, such as "Actions left: 14.".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kbgym.agents.llm.cassette import Cassette, Exchange
from kbgym.agents.llm.values import Call, Message, assistant_call
from kbgym.canonical import decode, encode, write_lines


def _arguments(function: dict[str, Any]) -> dict[str, Any]:
    """Return a call's arguments; text that is not a JSON object is wrapped in one unchanged."""
    if isinstance(function["arguments"], dict):
        return dict(function["arguments"])
    try:
        return decode(function["arguments"], dict[str, Any])
    except msgspec.DecodeError:
        return {"arguments": function["arguments"]}


def transcripts(cassette: Cassette) -> Iterator[dict[str, Any]]:
    """Yield every finished pass, in order of completion."""
    exchanges = [exchange for exchange in cassette.exchanges if not _correction(exchange)]
    tails = {_key(exchange, len(exchange.messages)): exchange.tail for exchange in exchanges}
    extended = {prefix for exchange in exchanges for prefix in _prefixes(exchange)}
    for exchange in exchanges:
        if len(exchange.reply.calls) == 1 and _key(exchange, len(exchange.messages)) not in extended:
            ends = {
                length - 1: tails.get(_key(exchange, length), "") for length in range(1, len(exchange.messages) + 1, 2)
            }
            yield _chat(exchange, ends)


def export(cassette: Cassette, out: Path) -> int:
    """Write the transcripts and return their number."""
    chats = list(transcripts(cassette))
    write_lines(out, chats)
    return len(chats)


def _correction(exchange: Exchange) -> bool:
    """Return True for a request that answers a malformed reply: it ends with plain text by assistant and user."""
    return any(m.role == "assistant" and m.call is None for m in exchange.messages)


def _key(exchange: Exchange, length: int) -> bytes:
    return encode([exchange.model, exchange.system, exchange.messages[:length]])


def _prefixes(exchange: Exchange) -> Iterator[bytes]:
    # A pass grows by two messages a turn: the call and its result.
    for length in range(len(exchange.messages) - 2, 0, -2):
        yield _key(exchange, length)


def _chat(exchange: Exchange, ends: Mapping[int, str]) -> dict[str, Any]:
    (call,) = exchange.reply.calls
    last = Call(call.name, call.arguments, f"call_{len(exchange.messages) // 2 + 1}")
    system = {"role": "system", "content": exchange.system}
    said = [*chat(exchange.messages), assistant_call(last)]
    return {"messages": [system, *for_templates(said, ends)], "tools": list(exchange.tools)}


def for_templates(said: Iterable[dict[str, Any]], ends: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return messages in the format of chat templates; `ends` are the last lines of messages by position."""
    shown: list[dict[str, Any]] = []
    for number, message in enumerate(said):
        content = message.get("content") or ""
        found = {**message, "content": f"{content}\n\n{ends[number]}" if ends.get(number) else content}
        if calls := message.get("tool_calls"):
            found["tool_calls"] = [
                {**call, "function": {"name": call["function"]["name"], "arguments": _arguments(call["function"])}}
                for call in calls
            ]
        shown.append(found)
    return shown


def chat(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return messages in OpenAI's format."""
    shown: list[dict[str, Any]] = []
    for message in messages:
        if message.call is not None:
            shown.append(assistant_call(message.call))
        elif message.role == "tool":
            shown.append({"role": "tool", "tool_call_id": message.id, "content": message.text})
        else:
            shown.append({"role": message.role, "content": message.text})
    return shown
