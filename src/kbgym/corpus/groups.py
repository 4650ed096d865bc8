"""Handfuls of documents that belong together, drawn by a seed: what questions are drafted from.

A handful is a document, its neighbours in the file, and documents elsewhere that share a rare name with one of them, so
that a question over two places can be asked. Nothing here knows who drafts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kbgym.canonical import digest
from kbgym.worlds.world import Document

NEAR = 2  # neighbours on either side
ELSEWHERE = 3
RARE = 12  # a name in more documents than this joins too much
_NAME = re.compile(r"(?<![\w-])[A-Z][\w'’-]+")


def handfuls(documents: Sequence[Document], seed: int = 0) -> Iterator[tuple[Document, ...]]:
    """Handfuls around every document, each once, in an order the seed decides; first those that bring new ones."""
    names = [dict.fromkeys(_NAME.findall(document.text)) for document in documents]
    where: dict[str, list[int]] = {}
    for place, found in enumerate(names):
        for name in found:
            where.setdefault(name, []).append(place)
    order = sorted(range(len(documents)), key=lambda place: digest(f"{seed}:{documents[place].id}".encode()))
    given: set[tuple[int, ...]] = set()
    held: set[int] = set()
    for brings_new in (True, False):
        for place in order:
            if brings_new and place in held:
                continue
            chosen = _around(documents, place, names, where)
            if chosen not in given:
                given.add(chosen)
                held.update(chosen)
                yield tuple(documents[one] for one in chosen)


def _around(
    documents: Sequence[Document],
    place: int,
    names: Sequence[Mapping[str, None]],
    where: Mapping[str, Sequence[int]],
) -> tuple[int, ...]:
    """The places of one handful, in the order of the files."""
    near = range(max(0, place - NEAR), min(len(documents), place + NEAR + 1))
    chosen = [one for one in near if _file(documents[one]) == _file(documents[place])]
    shared = sorted((len(where[name]), name) for one in chosen for name in names[one] if 2 <= len(where[name]) <= RARE)
    further = dict.fromkeys(one for _, name in shared for one in where[name] if one not in chosen)
    return tuple(sorted([*chosen, *list(further)[:ELSEWHERE]]))


def _file(document: Document) -> str:
    return document.source.file if document.source else ""
