"""The rows of an exam, read only: a file in progress may end in a torn line, which is left where it is."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kbgym.canonical import Decoder, open_file
from kbgym.errors import BadInput, Damaged
from kbgym.protocol.exam import Row

_decoder: Decoder[Row] = Decoder(Row)


def read_exam(file: Path) -> tuple[Row, ...]:
    """Every whole line, in the file's order."""
    try:
        with open_file(file) as rows_file:
            data = rows_file.read()
    except OSError as error:
        raise BadInput(f"cannot read {file.name}: {error.strerror}.") from error
    rows: dict[str, Row] = {}
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
        try:
            row = _decoder.decode(line)
        except msgspec.DecodeError as error:
            raise Damaged(f"{file.name}, line {number}: {error}") from error
        rows[row.id] = row
    return tuple(rows.values())
