"""Plain text, JSONL and CSV into pages.

A JSONL line is an object with `text`, and `title` if it has one. A CSV row is the same where there is a column `text`;
otherwise it is a row of a table and becomes one sentence. The place of a row's sentences is the row.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import msgspec

from kbgym.canonical import Decoder
from kbgym.corpus.blocks import Block, Broken, Page, Plain, folded, row_text
from kbgym.corpus.files import Found, read_rows

_GAP = re.compile(r"\n[ \t]*\n\s*")
_FIRST = re.compile(r"\s*(\S[^\n]{0,98}[^\s.!?:;,…])[ \t]*\n[ \t]*\n")
_ITEM = re.compile(r"[ \t]*(?:[-*•‣+]|\d{1,3}[.)])[ \t]+(?=\S)")


def read_text_file(text: str) -> Page:
    """Paragraphs between empty lines; a line that begins like a list item is one, a short first line the title."""
    first = _FIRST.match(text)
    page = Page(folded(first[1]) if first else "")
    at = first.end() if first else 0
    introduction: Block | None = None
    for gap in [*_GAP.finditer(text), None]:
        end = gap.start() if gap else len(text)
        for start, stop, item in _parts(text, at, end):
            plain = Plain()
            plain.add(text[start:stop], start)
            if plain.text.strip():
                page.blocks.append(Block("item" if item else "sentence", plain, under=introduction if item else None))
                if not item:
                    introduction = page.blocks[-1] if plain.text.rstrip().endswith(":") else None
                elif introduction:
                    introduction.introduces = True
        at = gap.end() if gap else end
    return page


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    item = False
    at = start
    while at < end:
        line_end = text.find("\n", at, end)
        mark = _ITEM.match(text, at, end)
        if mark:
            if start < at:
                yield start, at, item
            start, item = mark.end(), True
        at = end if line_end < 0 else line_end + 1
    if start < end:
        yield start, end, item


class _Row(msgspec.Struct):
    text: str
    title: str = ""


def read_jsonl(file: Found) -> Iterator[Page]:
    decoder = Decoder[_Row](_Row)
    for number, (place, line) in enumerate(read_rows(file), 1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise Broken(f"line {number:,}: {error}") from error
        yield _page(row.title, row.text, place, place + len(line.rstrip("\n")))


def read_csv(file: Found) -> Iterator[Page]:
    end = 0

    def lines() -> Iterator[str]:
        nonlocal end  # where the last line the reader took ends: a row may take several
        for place, line in read_rows(file):
            end = place + len(line)
            yield line

    reader = csv.reader(lines(), strict=True, delimiter="\t" if file.path.suffix.lower() == ".tsv" else ",")
    try:
        headers = [folded(header) for header in next(reader, [])]
        names = [header.lower() for header in headers]
        if "question" in names and ("answer" in names or "answers" in names):
            raise Broken("it holds questions and answers, which must not be documents; give it with --questions")
        start = end
        for row in reader:
            if any(cell.strip() for cell in row):
                yield _table_page(headers, names, row, start, end)
            start = end
    except csv.Error as error:
        raise Broken(f"line {reader.line_num:,}: {error}") from error


def _table_page(headers: list[str], names: list[str], row: list[str], start: int, end: int) -> Page:
    if len(row) > len(headers):
        raise Broken(f"a row has {len(row)} cells, and there are {len(headers)} headers")
    if "text" in names:
        named = dict(zip(names, row, strict=False))
        return _page(named.get("title", ""), named.get("text", ""), start, end)
    plain = Plain()
    plain.add(row_text(headers, [folded(cell) for cell in row]), start)
    return Page("", [Block("row", plain, span=(start, end), whole=True)])


def _page(title: str, text: str, start: int, end: int) -> Page:
    plain = Plain()
    plain.add(text, start)
    return Page(folded(title), [Block("sentence", plain, span=(start, end))] if text.strip() else [])
