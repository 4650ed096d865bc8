"""Readers of plain text, JSON, JSONL and CSV as pages.

A JSON object with a `text` (and a `title`) is a page; its other values are fields. A CSV row with a column `text` is
the same, any other row is a row of a table. The place of a row's documents is the row. Other JSON is a tree of fields.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any

from kbgym.corpus.blocks import Block, Broken, Page, folded, row_text
from kbgym.corpus.fields import Number, Pairs, add_fields, field_page, json_values, tree_of
from kbgym.corpus.files import FoundFile, read_rows, read_text
from kbgym.corpus.html import escaped, guarded
from kbgym.corpus.markdown import read_markdown

QUESTIONS = "it holds questions and answers, which must not be documents; give it with --questions"

_FIRST = re.compile(r"\s*(\S[^\n]{0,98}[^\s.!?:;,…])[ \t]*\n[ \t]*\n")
_ITEM = re.compile(r"[ \t]*(?:[-*•‣+]|\d{1,3}[.)])[ \t]+(?=\S)")


def read_text_file(text: str) -> Page:
    """Read paragraphs and list items, as Markdown without markup; a short first line is the title."""
    first = _FIRST.match(text)
    lines = text[first.end() :].split("\n") if first else text.split("\n")
    marks = [_ITEM.match(line) for line in lines]
    page = read_markdown(
        "\n".join(
            f"- {escaped(line[mark.end() :])}" if mark else guarded(escaped(line.strip()))
            for line, mark in zip(lines, marks, strict=True)
        )
    )
    page.title = folded(first[1]) if first else ""
    return page


def read_jsonl(file: FoundFile) -> Iterator[Page]:
    """Yield a page for each object: one per line, or one array of them."""
    first = True
    for number, (place, line) in enumerate(read_rows(file), 1):
        if not line.strip():
            continue
        if first and line.lstrip().startswith("["):
            yield from read_json_file(file)
            return
        first = False
        try:
            ((value, start, end),) = json_values(line)
        except ValueError:
            raise Broken(f"line {number:,}: more than one object") from None
        except Broken as broken:
            raise Broken(f"line {number:,}: {str(broken).partition(': ')[2] or broken}") from None
        yield _object_page(value, (place + start, place + end), f"line {number:,}: ")


def read_json_file(file: FoundFile) -> Iterator[Page]:
    """Yield a page for each object with a `text`; all other JSON is one page of fields."""
    text = read_text(file)
    values = list(json_values(text))
    if len(values) == 1 and isinstance(values[0][0], list) and not isinstance(values[0][0], Pairs):
        whole = values[0][1:]
        items = [(value, *whole) for value in values[0][0]]
    else:
        items = values
    objects = [dict(value) for value, _, _ in items if isinstance(value, Pairs)]
    if any("question" in one and ("answer" in one or "answers" in one) for one in objects):
        raise Broken(QUESTIONS)
    if objects and len(objects) == len(items) and all(isinstance(one.get("text"), str) for one in objects):
        for value, start, end in items:
            yield _object_page(value, (start, end), "")
    else:
        trees = [tree_of(value, (start, end)) for value, start, end in values]
        yield field_page(trees, [], len(text), (0, len(text)))


def _object_page(value: Any, span: tuple[int, int], where: str) -> Page:
    """Return a page of an object's `title` and `text`, with its other values as fields."""
    if not isinstance(value, Pairs):
        raise Broken(f"{where}no object")
    said = dict(value)
    if "question" in said and ("answer" in said or "answers" in said):
        raise Broken(QUESTIONS)
    if not isinstance(said.get("text", ""), str) or (isinstance(said.get("text"), Number)):
        raise Broken(f"{where}`text` is no text")
    title = said.get("title") or said.get("name") if "text" not in said else said.get("title")
    text = said.get("text", "")
    blocks = [Block("sentence", text, span=span)] if text.strip() else []
    page = Page(folded(title) if isinstance(title, str) else "", blocks)
    rest = Pairs(pair for pair in value if pair[0] != "text" and not (pair[0] == "title" and pair[1] == title))
    add_fields(page, [tree_of(rest, span)], span[1] - span[0], span)
    return page


def read_csv(file: FoundFile) -> Iterator[Page]:
    end = 0

    def lines() -> Iterator[str]:
        nonlocal end  # the end of the last line that the reader took: a row may take several
        for place, line in read_rows(file):
            end = place + len(line)
            yield line

    reader = csv.reader(lines(), strict=True, delimiter="\t" if file.path.suffix.lower() == ".tsv" else ",")
    try:
        headers = [folded(header) for header in next(reader, [])]
        names = [header.lower() for header in headers]
        if "question" in names and ("answer" in names or "answers" in names):
            raise Broken(QUESTIONS)
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
        keys = [name if name in ("text", "title") else header for name, header in zip(names, headers, strict=True)]
        cells = Pairs((key, cell) for key, cell in zip(keys, row, strict=False) if cell.strip())
        return _object_page(cells, (start, end), "")
    said = row_text(headers, [folded(cell) for cell in row])
    return Page("", [Block("row", said, span=(start, end), whole=True)])
