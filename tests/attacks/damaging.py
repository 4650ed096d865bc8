"""What hypothesis does to a file: bytes changed, lines moved, and JSON values replaced by what nobody expects there."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from kbgym.trace.log import START, chained

# Values as JSON, so that each use is a new one.
STRANGE = (
    *"null true 0 -1 1 2147483648 9223372036854775807 -9223372036854775808 0.5 -0.0 1e308 [] {} [null]".split(),
    "1" + "0" * 30,
    "[" * 400 + "]" * 400,
    '["d1", "d1"]',
    '{"a": {"b": []}}',
    *(
        json.dumps(text)
        for text in (
            "",
            " ",
            "\n",
            "x" * 5_000,
            "9" * 5_000,
            "../../../tmp/out",
            "/dev/zero",
            "a\x00b",
            "\x1b[2J\u202e",
            "os:abort",
            "cassette:/dev/zero",
            ":",
            "llm:openai/x",
            "hash-99999999999",
            "=cmd()",
        )
    ),
)
RAW = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"null",
    b"NaN",
    b"1e999",
    b'"\\ud800"',
    b"[" * 20_000,
    b'{"a":' * 20_000,
)


def values(draw: Any, data: bytes) -> bytes:
    """One or two values of one line replaced, removed, repeated or added."""
    lines = data.split(b"\n")
    filled = [at for at, line in enumerate(lines) if line.strip()]
    if not filled:
        return data
    at = draw(st.sampled_from(filled))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return data
    holder = [value]
    for _ in range(draw(st.integers(1, 2))):
        place, key = _somewhere(draw, holder)
        kind = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if kind == "remove" and isinstance(place, dict):
            place.pop(key, None)
        elif kind == "add" and isinstance(place, dict):
            place[draw(st.sampled_from(["extra", "", "id", "kind", "event", "tag"]))] = json.loads(
                draw(st.sampled_from(STRANGE))
            )
        else:
            place[key] = json.loads(draw(st.sampled_from(STRANGE)))
    lines[at] = json.dumps(holder[0]).encode()
    return b"\n".join(lines)


def _somewhere(draw: Any, value: Any) -> tuple[Any, Any]:
    """A place in nested JSON that can be changed."""
    place, key = value, 0
    while True:
        inside = place[key]
        if not isinstance(inside, dict | list) or not inside or draw(st.integers(0, 3)) == 0:
            return place, key
        place, key = inside, draw(st.sampled_from(list(inside) if isinstance(inside, dict) else range(len(inside))))


def bytes_(draw: Any, data: bytes) -> bytes:
    """Bytes changed, removed, repeated or put in."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        to = min(len(data), at + draw(st.integers(0, 60)))
        put = draw(st.binary(max_size=8) | st.sampled_from(RAW) | st.just(data[at:to] * 2))
        data = data[:at] + put + data[to:]
    return data


def lines_(draw: Any, data: bytes) -> bytes:
    """Lines cut, moved, doubled or left out."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    match draw(st.sampled_from(["swap", "double", "drop", "cut", "tear"])):
        case "swap":
            lines[one], lines[other] = lines[other], lines[one]
        case "double":
            lines.insert(one, lines[other])
        case "drop":
            del lines[one]
        case "cut":
            del lines[one:]
        case "tear":
            lines[-1] = lines[-1][: draw(st.integers(0, len(lines[-1])))]
    return b"".join(lines)


def rechained(data: bytes) -> bytes:
    """A trace whose lines were changed, with every hash made to fit again: only the values are wrong."""
    chain, made = START, b""
    for line in data.split(b"\n")[:-1]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = {}
        if isinstance(value, dict):
            value.pop("chain", None)
            body = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
            written, chain = chained(body if value else b'{"x":0}', chain)
            made += written
    return made


@st.composite
def damaged(draw: Any, data: bytes, trace: bool = False) -> bytes:
    """A file somebody has been at."""
    changed: bytes = draw(st.sampled_from([values, values, bytes_, lines_]))(draw, data)
    return rechained(changed) if trace and draw(st.integers(0, 3)) else changed
