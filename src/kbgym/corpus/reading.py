"""A file's pages, by whichever reader its format has, and the text whose words must come out somewhere."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

import msgspec

from kbgym.corpus.blocks import Page, Step
from kbgym.corpus.converting import Converter
from kbgym.corpus.fields import field_page
from kbgym.corpus.files import FoundFile, read_text
from kbgym.corpus.hypertext import html_words, read_html
from kbgym.corpus.markdown import read_markdown
from kbgym.corpus.rows import read_csv, read_json_file, read_jsonl, read_text_file
from kbgym.corpus.trees import read_toml, read_yaml

_NAMELESS = ("index", "_index", "readme", "default")


class FileReading(msgspec.Struct, frozen=True):
    """What a reader makes of a file. Rows are read one by one, so of them there is no text."""

    pages: Iterable[Page]
    text: str = ""


def read_file(file: FoundFile, keep_code: bool, converter: Converter, step: Step | None = None) -> FileReading:
    """A file as pages; raises Broken where it is not what it says it is."""
    match file.format:
        case "jsonl":
            return FileReading(read_jsonl(file))
        case "csv":
            return FileReading(read_csv(file))
        case "json":
            return FileReading(read_json_file(file))
        case "converted":
            text = converter.office(file)
            page = read_markdown(text, keep_code, step)
            for block in page.blocks:  # places in the Markdown are none of the file
                block.span = (0, file.size)
            return FileReading([page], text)
    text = read_text(file)
    match file.format:
        case "markdown":
            return FileReading([read_markdown(text, keep_code, step)], text)
        case "html":
            return FileReading([read_html(text, keep_code=keep_code)], html_words(text))
        case "rst":
            return FileReading([_rst(text, keep_code, converter, step)], text)
        case "yaml":
            trees, comments = read_yaml(text)
            page = field_page(trees, len(text), (0, len(text)))
            page.lost += [("comment", comment) for comment in comments]
            return FileReading([page], text)
        case "toml":
            tree, comments = read_toml(text)
            page = field_page([tree], len(text), (0, len(text)))
            page.lost += [("comment", comment) for comment in comments]
            return FileReading([page], text)
        case _:
            return FileReading([read_text_file(text)], text)


def _rst(text: str, keep_code: bool, converter: Converter, step: Step | None) -> Page:
    written = converter.restructured(text)
    if written is None:
        return read_text_file(text)
    page = read_markdown(written.markdown, keep_code, step)
    page.lost += written.lost
    at = 0
    for block in page.blocks:  # the text was rewritten, so a block is looked up in the file by its first words
        words = re.findall(r"\w+", block.text.text[:200])[:4]
        found = re.compile(r"\W+".join(map(re.escape, words))).search(text, at, at + 50_000) if words else None
        at = found.start() if found else at
        block.span = (at, min(len(text), at + max(1, len(block.text))))
    return page


def fallback_title(name: str) -> str:
    """What a page without a title is called: its file, or the folder of an `index` or `readme`."""
    folder, base = posixpath.split(posixpath.splitext(name)[0])
    if base.lower() in _NAMELESS and folder:
        base = posixpath.basename(folder)
    return re.sub(r"[\s_-]+", " ", base).strip()
