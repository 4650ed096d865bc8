"""Recorded passes for fine-tuning: chat transcripts of a cassette, and preference pairs of exams in TRL's format.

A pass is a chain of requests, each of which extends the previous one; the last contains the whole pass. Corrections,
the replies they correct, and passes that ended without a valid reply are omitted. Transcripts have the format of TRL's
chat templates: arguments are objects, the content of a call is "", and each message that was answered ends with the
last lines of its request, such as "Actions left: 14.".

    {"messages": [...], "tools": [...]}                                         of a cassette, one line a pass
    {"prompt": [...], "chosen": [...], "rejected": [...], "tools": [...]}       of two exams of one store

Of two passes on a question the correct one is preferred, or the cheaper of two correct ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from kbgym.agents.llm.cassette import Cassette, Exchange
from kbgym.agents.llm.prompting import last_lines, messages, skill_of
from kbgym.agents.llm.values import Call, Message
from kbgym.api.workspace import Workspace
from kbgym.canonical import decode, encode
from kbgym.errors import BadInput
from kbgym.gym.observations import observe
from kbgym.gym.policy import Forward, Turn, View
from kbgym.gym.tools import openai_tools
from kbgym.store import Refused, Store
from kbgym.training.exam import Row, read_rows
from kbgym.training.exam_header import read_header


def transcripts(cassette: Cassette) -> Iterator[dict[str, Any]]:
    """Yield every finished pass, in order of completion."""
    # A request that answers a malformed reply ends with plain text by assistant and user.
    exchanges = [
        one for one in cassette.exchanges if not any(m.role == "assistant" and m.call is None for m in one.messages)
    ]
    tails = {_key(exchange, len(exchange.messages)): exchange.tail for exchange in exchanges}
    # A pass grows by two messages a turn: the call and its result.
    extended = {_key(one, length) for one in exchanges for length in range(len(one.messages) - 2, 0, -2)}
    for exchange in exchanges:
        size = len(exchange.messages)
        if len(exchange.reply.calls) == 1 and _key(exchange, size) not in extended:
            (call,) = exchange.reply.calls
            last = Message("assistant", call=Call(call.name, call.arguments, f"call_{size // 2 + 1}"))
            ends = {length - 1: tails.get(_key(exchange, length), "") for length in range(1, size + 1, 2)}
            said = [{"role": "system", "content": exchange.system}, *_for_templates((*exchange.messages, last), ends)]
            yield {"messages": said, "tools": list(exchange.tools)}


def _key(exchange: Exchange, length: int) -> bytes:
    return encode([exchange.model, exchange.system, exchange.messages[:length]])


def _for_templates(said: Iterable[Message], ends: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return messages in the format of chat templates; `ends` are the last lines of messages by position."""
    shown = []
    for number, message in enumerate(said):
        end = ends.get(number)
        chat = message.as_chat() | {"content": f"{message.text}\n\n{end}" if end else message.text}
        for call in chat.get("tool_calls", ()):
            call["function"]["arguments"] = _arguments(call["function"]["arguments"])
        shown.append(chat)
    return shown


def _arguments(written: str) -> dict[str, Any]:
    """Return a call's arguments; text that is not a JSON object is wrapped in one unchanged."""
    try:
        return decode(written, dict[str, Any])
    except msgspec.DecodeError:
        return {"arguments": written}


# -- preferences -------------------------------------------------------------------------------------------------------


def preferences(opened: Workspace, exams: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Return every preference pair of these exams, in the order of the first exam's questions."""
    system = {"role": "system", "content": skill_of("reader", **opened.told).text}
    for one, other in combinations([_rows_of(file, opened.store) for file in exams], 2):
        for id, row in one.items():
            if id in other and (ranked := _ranked(row, other[id])):
                (question, *chosen), (_, *rejected) = (_trained_on(row, opened)[:-1] for row in ranked)
                said = {"prompt": [system, question], "chosen": chosen, "rejected": rejected}
                yield {**said, "tools": openai_tools("reader")}


def _rows_of(file: Path, store: Store) -> dict[str, Row]:
    if not file.is_file():
        raise BadInput(f"{file} is no exam: there is no such file.")
    header = read_header(file)
    if header is not None and header.store != store.fingerprint:
        raise BadInput(f"{file} is an exam of another store; name the one it was held on.")
    return {row.id: row for row in read_rows(file) if row.shots}


def _ranked(one: Row, other: Row) -> tuple[Row, Row] | None:
    """Return the better pass first, or None if neither is correct or both are equal."""
    cost = [(row.f1 != 1.0, row.actions) for row in (one, other)]
    if cost[0] == cost[1] or min(cost)[0]:
        return None
    return (one, other) if cost[0] < cost[1] else (other, one)


def _trained_on(row: Row, opened: Workspace) -> list[dict[str, Any]]:
    """Return the pass as a model would receive it, with the actions left after every message it answers."""
    task, budget = Forward(row.question), opened.settings.forward_budget
    try:
        seen = [observe(shot.result, opened.store.look, row.observations) for shot in row.shots]
    except (KeyError, Refused):
        raise BadInput(f"the row of question {row.id} names documents this store does not have.") from None
    turns = tuple(Turn(shot.action, one) for shot, one in zip(row.shots, seen, strict=True))
    views = [View("reader", task, turns[:taken], budget - taken) for taken in range(len(turns))]
    ends = {2 * taken: last_lines(view) for taken, view in enumerate(views)}
    return _for_templates(messages(View("reader", task, turns, 0)), ends)
