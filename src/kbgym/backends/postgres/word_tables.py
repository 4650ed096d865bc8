"""The words of a base in tables of its database: what they are, and how they are made, in one pass over the texts.

    word_places   the place of every text in the order of the ids, so that equal scores need no look at an id
    words         a term's postings in blocks: places in order, how often the term stands there, how long the text is
    word_totals   one row: up to which number texts were counted, and how many terms they have

All are derived and may be thrown away. Texts are counted run by run, each added whole or not at all, so that what was
interrupted goes on where it was.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kbgym.backends.postgres.derived_tables import copy_in, drop_own, made_as
from kbgym.progress import ProgressCallback
from kbgym.search.base import TextBase
from kbgym.search.terms import terms

if TYPE_CHECKING:
    from kbgym.backends.postgres.server import Connection

Postings = NDArray[Any]

POSTING = np.dtype([("place", "<i4"), ("often", "<i4"), ("long", "<i4")])
BLOCK = 512  # postings
_LABEL = "terms of kbgym, 1"  # another way to cut texts into terms, or other tables, need another number
_RUN = 2_000_000  # terms sorted at once
_TOLD = 4096  # texts between two words to whoever waits

_CREATE = (
    """CREATE TABLE word_places AS SELECT (row_number() OVER (ORDER BY id COLLATE "C") - 1)::int AS place, number
        FROM initial""",
    "ALTER TABLE word_places ADD PRIMARY KEY (place)",
    "CREATE UNIQUE INDEX word_places_of ON word_places (number)",
    """CREATE TABLE words (term text COLLATE "C", block bigint, held int NOT NULL, first int NOT NULL,
        last int NOT NULL, often int NOT NULL, long int NOT NULL, postings bytea NOT NULL,
        PRIMARY KEY (term, block))""",
    "ALTER TABLE words ALTER postings SET STORAGE EXTERNAL",
    "CREATE TABLE word_totals (done bigint NOT NULL, terms bigint NOT NULL)",
    "INSERT INTO word_totals VALUES (0, 0)",
    f"COMMENT ON TABLE words IS '{_LABEL}'",
)


def totals(connection: Connection) -> tuple[int, int]:
    row = connection.execute("SELECT done, terms FROM word_totals").fetchone()
    return (0, 0) if row is None else (row[0], row[1])


def ready(base: TextBase, connection: Connection) -> bool:
    return made_as(connection, "words") == _LABEL and totals(connection)[0] == len(base)


def make(base: TextBase, tick: ProgressCallback | None, connection: Connection) -> None:
    if made_as(connection, "words") != _LABEL:
        with connection.transaction():
            drop_own(connection, "words", "word_places", "word_totals")
            for statement in _CREATE:
                connection.execute(statement)
    done = totals(connection)[0]
    run = _Run(done)
    for number, _, text in dropwhile(lambda text: text[0] <= done, base.texts()):
        if tick is not None and number % _TOLD == 0:
            tick(number, len(base), "words")
        run.add(terms(text))
        if len(run.flat) >= _RUN or number == len(base):
            run.write(connection, len(base))
            run = _Run(number)
    connection.execute("ANALYZE words, word_places")
    if tick is not None:
        tick(len(base), len(base), "words")


class _Run:
    """The terms of texts that follow a number, as many as are sorted at once."""

    def __init__(self, after: int) -> None:
        self._after = after
        self._numbers: dict[str, int] = {}
        self.flat, self._lengths = array("i"), array("i")

    def add(self, found: list[str]) -> None:
        numbers = self._numbers
        self._lengths.append(len(found))
        self.flat.extend([numbers.setdefault(term, len(numbers)) for term in found])

    def write(self, connection: Connection, count: int) -> None:
        """Add these texts to the tables, all or none; `count` is how many texts there are in all."""
        names, lengths = sorted(self._numbers), np.array(self._lengths)
        last = self._after + len(lengths)
        rows = connection.cursor(binary=True).execute(
            "SELECT place FROM word_places WHERE number > %s AND number <= %s ORDER BY number", [self._after, last]
        )
        places = np.array([place for (place,) in rows], dtype=np.int64)
        rank = np.empty(len(names), dtype=np.int64)
        rank[[self._numbers[name] for name in names]] = np.arange(len(names))
        keys = rank[np.array(self.flat, dtype=np.int64)] * count + np.repeat(places, lengths)
        keys, often = np.unique(keys, return_counts=True)
        which, held = np.divmod(keys, count)
        order = np.argsort(places)
        postings = np.empty(len(keys), dtype=POSTING)
        postings["place"], postings["often"] = held, often
        postings["long"] = lengths[order][np.searchsorted(places[order], held)]
        starts = np.searchsorted(which, np.arange(len(names) + 1)).tolist()
        with connection.transaction():
            copy_in(connection, "words", self._blocks(names, starts, postings))
            connection.execute("UPDATE word_totals SET done = %s, terms = terms + %s", [last, len(self.flat)])

    def _blocks(self, names: list[str], starts: list[int], postings: Postings) -> Iterator[tuple[bytes, ...]]:
        for name, start, end in zip(names, starts, starts[1:], strict=False):
            # A term has no more blocks here than there are texts: no other run counts from the same number.
            for block, at in enumerate(range(start, end, BLOCK), self._after + 1):
                some = postings[at : min(at + BLOCK, end)]
                places, often, long = some["place"], some["often"], some["long"]
                head = (len(some), int(places[0]), int(places[-1]), int(often.max()), int(long.min()))
                yield (
                    name.encode(),
                    struct.pack(">q", block),
                    *(struct.pack(">i", part) for part in head),
                    some.tobytes(),
                )
