"""Time that grows with the text and no faster, in whatever the text is: measured against a text of words."""

import contextlib
import time
from pathlib import Path

import pytest

from kbgym.corpus.blocks import Broken
from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.corpus.files import walk
from kbgym.corpus.markdown import read_markdown
from kbgym.corpus.markdown_inline import PART, parts, references
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
    """As much of one character takes not many times what a list of short items takes, however slow the machine is."""
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


PARAGRAPHS = [
    "# Head\n",
    "Text with [a] and [b][c].\n",
    "- item\n\n  more\n",
    "```\n\n# no heading\n\n```\n",
    "a | b\n- | -\n1 | 2\n",
    "<!-- \n\n# hidden\n\n-->\n",
    "<div>\n",
    "</div>\n",
    "    code\n",
    "Setext\n===\n",
    "> quote\n",
    "[a]: x.md\n",
]


def test_in_parts_a_text_gives_what_it_gives_whole(monkeypatch):
    text = "\n".join(PARAGRAPHS * 8)
    whole = read_markdown(text)
    monkeypatch.setattr("kbgym.corpus.markdown_inline.PART", 100)
    cut = read_markdown(text)
    assert len(parts(text)) > 8 and parts(text)[0][0] == 0 and parts(text)[-1][1] == len(text)
    for one, other in zip(whole.blocks, cut.blocks, strict=True):
        assert (one.kind, one.text.text, one.sections, one.links) == (
            other.kind,
            other.text.text,
            other.sections,
            other.links,
        )
        assert one.text.place(0) == other.text.place(0)


def test_references_count_wherever_they_stand():
    text = "See [the yard][y].\n\n" + ("Ruth is here. " * 50 + "\n\n") * (3 * PART // 700) + "[y]: yards.md\n"
    assert len(parts(text)) > 1 and references(text) == "[y]: yards.md"
    assert read_markdown(text).blocks[0].links == [(4, "yards.md")]


def test_a_large_file_says_how_far_it_is(tmp_path):
    (tmp_path / "a.md").write_text("# T\n\n" + "Ruth sails the boat. Nell does not.\n\n" * 20_000)
    told: list[tuple[int, int]] = []
    corpus = read_corpus(
        [tmp_path], ReadingOptions(unit="sentence"), tick=lambda done, total, note: told.append((done, total))
    )
    assert len(corpus.documents) == 40_000
    assert len(told) > 10 and told == sorted(told) and told[-1][0] == told[-1][1] == corpus.bytes
