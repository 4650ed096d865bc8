"""Files appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbgym.canonical import write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.json"
    for content in ("first", "second"):
        with write_whole(file) as scratch:
            scratch.write_text(content)
            assert not file.exists() or file.read_text() == "first"
        assert file.read_text() == content
    assert list(file.parent.iterdir()) == [file]


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("before")
    with pytest.raises(OSError, match="full"), write_whole(file) as scratch:
        scratch.write_text("half")
        raise OSError("full")
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
