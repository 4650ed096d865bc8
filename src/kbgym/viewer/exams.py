"""The rows of an exam, read only: a file in progress may end in a torn line, which is left where it is."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kbgym.errors import BadInput, Damaged
from kbgym.protocol.exam import Row

_decoder = msgspec.json.Decoder(Row)


def read_exam(file: Path) -> tuple[Row, ...]:
    """Every whole line, in the file's order."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {file.name}: {error.strerror}.") from error
    rows: dict[str, Row] = {}
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
        try:
            row = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Damaged(f"{file.name}, line {number}: {error}") from error
        rows[row.id] = row
    return tuple(rows.values())
