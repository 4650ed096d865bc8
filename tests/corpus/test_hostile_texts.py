"""Reading time grows linearly with the text, measured against a text of plain words."""

import contextlib
import time
from pathlib import Path

import pytest

from kbgym.corpus.blocks import Broken
from kbgym.corpus.files import walk
from kbgym.corpus.reader_process import ReadTask
from kbgym.corpus.reading import read_file

SIZE = 200_000
CHARACTERS = [chr(code) for code in range(33, 127) if not chr(code).isalnum()] + ["a", "0", "\n", "\t", "ä", "。"]
PIECES = ["a'", "`\n", "` ", "- a\n", "1. a\n", "|a|b\n", "# a\n", "[^a]: b\n", "[a]: b\n", "a: b\n", "```\n", "A. "]


def seconds(folder: Path, name: str, text: str) -> float:
    """CPU time of reading a file in this process, without the limits that would end it."""
    (folder / name).write_text(text, encoding="utf-8")
    file = walk([folder / name]).files[0]
    before = time.process_time()
    with contextlib.suppress(Broken):
        read_file(ReadTask(bytes(file.path), file.name, file.format, file.size), lambda reply: None)
    return time.process_time() - before


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["md", "txt", "html", "yaml", "json", "toml", "csv", "jsonl"])
def test_one_character_over_and_over(tmp_path, ending):
    """A long run of one character costs at most a small multiple of a list of short items of the same length."""
    usual = seconds(tmp_path, "usual.md", "- a b\n" * (SIZE // 6))
    for character in CHARACTERS:
        text = character * (SIZE // len(character.encode()))
        assert seconds(tmp_path, f"a.{ending}", text) < 2 * usual, (ending, character)


@pytest.mark.parametrize("character", "`'<\n")
def test_what_used_to_take_longest(tmp_path, character):
    usual = seconds(tmp_path, "usual.md", "- a b\n" * 10_000)
    assert seconds(tmp_path, "a.md", character * 60_000) < 2 * usual


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_four_times_the_text_takes_not_much_more_than_four_times_as_long(tmp_path, piece):
    few, many = (seconds(tmp_path, "a.md", piece * (size // len(piece))) for size in (SIZE, 4 * SIZE))
    assert many < 8 * few + 1, (piece, few, many)
