"""Hostile files, such as deep nesting and devices, give one sentence and change nothing."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kbgym
from kbgym.canonical import Decoder, decode, open_file, read_file, read_lines, read_value
from kbgym.errors import BadInput, Damaged
from kbgym.training.exam import read_rows

DEEP = (b"[" * 100_000, b'{"a":' * 100_000)
SOURCE = Path(kbgym.__file__).parent


@pytest.mark.parametrize("data", [*DEEP, b'"\xff"', b"", b"nul", b"1e999", b'"\\ud800"', "\ud800"])
def test_whatever_is_wrong_is_one_kind_of_error(data: bytes | str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(data)
    with pytest.raises(msgspec.DecodeError):
        Decoder[Any](dict[str, Any]).decode(data)


def test_there_is_no_other_way_to_read_json() -> None:
    """Another would have to know about nesting and broken Unicode again. (minilm.py reads the installed model.)"""
    other = re.compile(r"msgspec\.json\.(decode|Decoder)\(|json\.loads?\(")
    found = [path.name for path in SOURCE.rglob("*.py") if other.search(path.read_text(encoding="utf-8"))]
    assert sorted(found) == ["canonical.py", "minilm.py"]


def test_nesting_is_told_by_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b"{}\n" + DEEP[1] + b"\n")
    with pytest.raises(Damaged, match="line 2: JSON is malformed: it is nested too deeply"):
        list(read_lines(file, dict))
    with pytest.raises(Damaged, match=r"rows\.jsonl"):
        read_value(file, dict)


def test_a_pipe_or_a_device_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "zero").symlink_to("/dev/zero")
    for path in (pipe, tmp_path / "zero", tmp_path):
        with pytest.raises(BadInput, match="no regular file"):
            read_file(path)
        with pytest.raises(OSError, match="no regular file"):
            open_file(path)


def test_an_exam_never_cuts_a_file_that_is_none(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    for content in (b"dear diary", b"{}\nnot a row", b"dear\ndiary"):
        notes.write_bytes(content)
        with pytest.raises(Damaged):
            read_rows(notes)
        assert notes.read_bytes() == content
    notes.write_bytes(b'{"actions":3,"answ')
    assert read_rows(notes) == []  # a row cut short is left where it is; the exam that goes on cuts it
