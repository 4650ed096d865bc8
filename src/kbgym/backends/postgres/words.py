"""The words of a base in its database: what `BM25Index` knows of texts, made once, then only read, a little at a time.

A search takes terms from the rarest on. Once no text without one of those can reach the page, it reads only the blocks
of common terms in which one of the texts in question may stand. Scores are the same sums in the same order as
`BM25Index` adds up. It knows nothing of what was changed on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbgym.backends.postgres.derived_tables import make_once
from kbgym.backends.postgres.word_tables import BLOCK, POSTING, Postings, make, ready, totals
from kbgym.progress import ProgressCallback
from kbgym.search.base import TextBase
from kbgym.search.cache import LRUCache
from kbgym.search.index import Hit
from kbgym.search.words import SURE, Weighed

Places = NDArray[np.int32]  # in order
Scores = NDArray[np.float64]

NO_PLACES: Places = np.empty(0, dtype=np.int32)
_SMALL = 128  # postings that are read along with where they lie
_MANY = 4 * BLOCK  # postings below which nothing is worth a short cut
# What is remembered: 48 MB of postings, 14 MB of where they lie, and names.
_POSTINGS, _BLOCKS, _NAMES = 4_000_000, 500_000, 50_000

_PLACES = "SELECT id, place FROM initial JOIN word_places USING (number) WHERE id = ANY(%s)"
_IDS = "SELECT place, id FROM word_places JOIN initial USING (number) WHERE place = ANY(%s)"


class _Term(NamedTuple):
    """Where the postings of a term lie, by block: which places it spans, its highest `often` and its lowest `long`."""

    held: int
    blocks: NDArray[np.int64]
    first: Places
    last: Places
    often: NDArray[np.int32]
    long: NDArray[np.int32]

    def most(self, scale: float, weighed: Weighed) -> float:
        """No posting is worth more."""
        return float(_worth(self.often, self.long, scale, weighed).max())

    def among(self, places: Places) -> NDArray[np.int64]:
        """The blocks that may hold one of some places."""
        inside = np.searchsorted(places, self.last, "right") > np.searchsorted(places, self.first)
        return self.blocks[inside]


_UNKNOWN = _Term(0, np.empty(0, np.int64), NO_PLACES, NO_PLACES, NO_PLACES, NO_PLACES)


class DatabaseWords:
    """Postings of all texts of a base. Opening it counts what is not counted yet. Safe for threads."""

    def __init__(self, base: TextBase, tick: ProgressCallback | None = None) -> None:
        self._base = base
        self._terms: LRUCache[str, _Term] = LRUCache(_BLOCKS)
        self._blocks: LRUCache[tuple[str, int], Postings] = LRUCache(_POSTINGS)
        self._names: LRUCache[int, str] = LRUCache(_NAMES)
        self._places: LRUCache[str, int] = LRUCache(_NAMES)
        make_once(base, "words", partial(ready, base), partial(make, base, tick))
        with base.connection() as connection:
            self._total = totals(connection)[1]

    def size(self) -> tuple[int, int]:
        """How many texts there are, and how many terms they have."""
        return len(self._base), self._total

    def document_frequency(self, wanted: Sequence[str]) -> list[int]:
        """How many texts hold each term."""
        return [term.held for term in self._found(wanted)]

    def places(self, ids: Iterable[str]) -> dict[str, int]:
        """The places of those ids that are there."""
        found, missing = self._places.get_many(ids)
        if missing:
            found.update(dict.fromkeys(missing, -1))
            found.update(self._rows(_PLACES, missing))
            for id in missing:
                self._places.put(id, found[id])
        return {id: place for id, place in found.items() if place >= 0}

    def top_k(self, weighed: Weighed, end: int, without: Places) -> list[Hit]:
        """The first `end` hits, those in some places left out, in no order."""
        known = self._known(weighed)
        most = [term.most(scale, weighed) for _, scale, term in known]
        places, scores, only = NO_PLACES, np.empty(0), False
        for at, (name, scale, term) in enumerate(known):
            left, lowest = sum(most[at:]), _reached(scores, end)
            only = only or (term.held > _MANY and lowest > left * SURE)
            if only:  # no other text can reach the page any more, and of these ever fewer
                near = scores >= lowest - left * SURE
                places = places[near]
                scores = self._added(scores[near], places, [(name, scale, term)], weighed)
                continue
            postings = self._postings(name, term.blocks)
            if len(without):
                postings = postings[~_inside(postings["place"], without)]
            places, scores = _merged(places, scores, postings, scale, weighed)
        lowest = _reached(scores, end)
        above, equal = np.flatnonzero(scores > lowest), np.flatnonzero(scores == lowest)
        chosen = np.concatenate([above, equal[: max(0, end - len(above))]])
        names = self._ids(places[chosen].tolist())
        return list(zip(names, scores[chosen].tolist(), strict=True))

    def score(self, weighed: Weighed, ids: Iterable[str]) -> dict[str, float]:
        """What those of these texts score that are here."""
        found = sorted((place, id) for id, place in self.places(ids).items())
        places = np.array([place for place, _ in found], dtype=np.int32)
        scores = self._added(np.zeros(len(places)), places, self._known(weighed), weighed)
        return {id: score for (_, id), score in zip(found, scores.tolist(), strict=True)}

    def _known(self, weighed: Weighed) -> list[tuple[str, float, _Term]]:
        found = self._found([name for name, _ in weighed.terms])
        return [(name, scale, term) for (name, scale), term in zip(weighed.terms, found, strict=True) if term.held]

    def _added(
        self, scores: Scores, places: Places, known: Iterable[tuple[str, float, _Term]], weighed: Weighed
    ) -> Scores:
        """The scores of some places once these terms are added up, too."""
        for name, scale, term in known:
            postings = self._postings(name, term.among(places))
            postings = postings[_inside(postings["place"], places)]
            scores[np.searchsorted(places, postings["place"])] += _worth(
                postings["often"], postings["long"], scale, weighed
            )
        return scores

    # -- reading ------------------------------------------------------------------------------------------------------

    def _rows(self, statement: Any, *values: Any) -> list[tuple[Any, ...]]:
        with self._base.connection() as connection:
            found: list[tuple[Any, ...]] = connection.cursor(binary=True).execute(statement, values).fetchall()
            return found

    def _found(self, wanted: Sequence[str]) -> list[_Term]:
        """What is known of terms; the postings of rare ones come along."""
        found, missing = self._terms.get_many(wanted)
        if missing:
            heads: dict[str, list[tuple[int, ...]]] = {name: [] for name in missing}
            for name, postings, *head in self._rows(
                f"""SELECT term, CASE WHEN held <= {_SMALL} THEN postings END, block, held, first, last, often, long
                FROM words WHERE term = ANY(%s) ORDER BY term, block""",
                missing,
            ):
                heads[name].append(tuple(head))
                if postings is not None:
                    self._keep(name, head[0], postings)
            for name, rows in heads.items():
                found[name] = term = _term(rows)
                self._terms.put(name, term, 8 + len(rows))
        return [found[name] for name in wanted]

    def _keep(self, name: str, block: int, raw: bytes) -> Postings:
        postings: Postings = np.frombuffer(bytes(raw), dtype=POSTING)
        self._blocks.put((name, block), postings, 40 + len(postings))
        return postings

    def _postings(self, name: str, blocks: NDArray[np.int64]) -> Postings:
        """All postings of some blocks of a term, in the order of the places."""
        found, missing = self._blocks.get_many((name, block) for block in blocks.tolist())
        if missing:
            statement = "SELECT block, postings FROM words WHERE term = %s AND block = ANY(%s)"
            for block, raw in self._rows(statement, name, [block for _, block in missing]):
                found[name, block] = self._keep(name, block, raw)
        if len(found) < 2:
            return next(iter(found.values()), np.empty(0, dtype=POSTING))
        joined = np.concatenate([found[key] for key in sorted(found)])
        places = joined["place"]
        return joined if (places[1:] > places[:-1]).all() else joined[np.argsort(places, kind="stable")]

    def _ids(self, places: Sequence[int]) -> list[str]:
        found, missing = self._names.get_many(places)
        if missing:
            for place, id in self._rows(_IDS, missing):
                found[place] = id
                self._names.put(place, id)
        return [found[place] for place in places]


def _term(rows: list[tuple[int, ...]]) -> _Term:
    if not rows:
        return _UNKNOWN
    blocks, held, *others = zip(*rows, strict=True)
    first, last, often, long = (np.array(numbers, dtype=np.int32) for numbers in others)
    return _Term(sum(held), np.array(blocks, dtype=np.int64), first, last, often, long)


def _worth(often: NDArray[Any], long: NDArray[Any], scale: float, weighed: Weighed) -> Scores:
    times = often.astype(np.float64)
    worth: Scores = times * scale / (times + (weighed.plain + weighed.per_term * long.astype(np.float64)))
    return worth


def _reached(scores: Scores, end: int) -> float:
    """The score of the last of the first `end`; 0 where there are not as many."""
    return float(np.partition(scores, len(scores) - end)[len(scores) - end]) if 0 < end <= len(scores) else 0.0


def _inside(some: Places, places: Places) -> NDArray[np.bool_]:
    """Which of some places are among others."""
    if not len(places):
        return np.zeros(len(some), dtype=np.bool_)
    found: NDArray[np.bool_] = places[np.minimum(np.searchsorted(places, some), len(places) - 1)] == some
    return found


def _merged(
    places: Places, scores: Scores, postings: Postings, scale: float, weighed: Weighed
) -> tuple[Places, Scores]:
    """Places and scores once a term's postings are added."""
    worth = _worth(postings["often"], postings["long"], scale, weighed)
    if not len(places):
        return postings["place"].copy(), worth
    every: Places = np.concatenate([places, postings["place"]])
    every.sort(kind="stable")
    every = every[np.concatenate([[True], every[1:] != every[:-1]])]
    added = np.zeros(len(every))
    added[np.searchsorted(every, places)] = scores
    added[np.searchsorted(every, postings["place"])] += worth
    return every, added
