"""Which page of its source a document stands on, and that page's title, as far as documents say.

A page is a file, a row of a table file, or what the documents of a public set are about. A world that was generated has
none. It knows documents, and nothing of stores or search.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable

import msgspec

from kbgym.worlds.world import Document

_ROWS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_DEEPER = " > "


class SourcePage(msgspec.Struct, frozen=True):
    """A page and its documents in the order they stand there."""

    title: str
    documents: tuple[Document, ...]


def page_of_source(document: Document) -> str | None:
    """A name for the page; two documents of one page have the same."""
    if document.source is not None:
        source = document.source
        by_row = source.file.lower().endswith(_ROWS)
        return f"{source.file}:{source.start}-{source.end}" if by_row else source.file
    title = document.about[0] if document.about else ""
    return title if title and document.text.startswith(f"{title}: ") else None


def pages_of(documents: Iterable[Document]) -> dict[str, str]:
    """The page of each document that has one, by id."""
    found = ((document.id, page_of_source(document)) for document in documents)
    return {id: page for id, page in found if page is not None}


def source_pages(documents: Iterable[Document]) -> list[SourcePage]:
    """All pages, in the order of their first documents."""
    grouped: dict[str, list[Document]] = {}
    for document in documents:
        if (page := page_of_source(document)) is not None:
            grouped.setdefault(page, []).append(document)
    return [SourcePage(_title(page, found), _in_order(found)) for page, found in grouped.items()]


def _in_order(found: list[Document]) -> tuple[Document, ...]:
    """By their place in the file; those of a public set stand as they were read."""
    return tuple(sorted(found, key=lambda document: document.source.start if document.source else 0))


def _title(page: str, found: list[Document]) -> str:
    """What most documents that begin with a title begin with, else the file's name."""
    first = found[0]
    if first.source is None:
        return page
    titles = Counter(title for document in found if (title := _before_colon(document.text)))
    if titles:
        title, times = titles.most_common(1)[0]
        if times > 1 or len(found) <= 2:
            return title
    stem = posixpath.splitext(posixpath.basename(first.source.file))[0]
    return " ".join(stem.replace("_", " ").replace("-", " ").split())


def _before_colon(text: str) -> str:
    before, colon, _ = text.partition(": ")
    return before.partition(_DEEPER)[0].strip() if colon else ""
