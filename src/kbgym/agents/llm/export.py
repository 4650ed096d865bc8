"""Recorded passes as chat transcripts for fine-tuning, one JSON line each: `{"messages": [...], "tools": [...]}`.

A pass is a chain of requests each of which extends the one before; the last one holds it all. Corrections and the
replies that made them necessary are left out, and so are passes that ended without a valid reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kbgym.agents.llm.cassette import Cassette, Exchange
from kbgym.agents.llm.values import Call, Message, assistant_call
from kbgym.canonical import encode, write_lines


def transcripts(cassette: Cassette) -> Iterator[dict[str, Any]]:
    """Yield every finished pass, in the order in which they were finished."""
    exchanges = [exchange for exchange in cassette.exchanges if not _correction(exchange)]
    extended = {prefix for exchange in exchanges for prefix in _prefixes(exchange)}
    for exchange in exchanges:
        if len(exchange.reply.calls) == 1 and _key(exchange, len(exchange.messages)) not in extended:
            yield _chat(exchange)


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


def _chat(exchange: Exchange) -> dict[str, Any]:
    (call,) = exchange.reply.calls
    last = Call(call.name, call.arguments, f"call_{len(exchange.messages) // 2 + 1}")
    system = {"role": "system", "content": exchange.system}
    return {"messages": [system, *chat(exchange.messages), assistant_call(last)], "tools": list(exchange.tools)}


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
