"""Word search in the database: a GIN index on `tsvector` proposes texts, and BM25 ranks them here.

    word_texts    the distinct terms of every text as a tsvector, and the number of its terms
    word_counts   the document frequency of every term; the empty term has the number of all terms

Terms are those of `search.terms`, so scores are bit-identical to those of `BM25Index`; only texts that were not
proposed are missed. Both tables are derived and may be dropped. Changes on top of the base are in memory: texts that
were changed or removed are hidden, and new ones are indexed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, combinations, dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING

from kbgym.backends.postgres.cache import LRUCache
from kbgym.backends.postgres.server import value_of
from kbgym.backends.postgres.tables import highest, is_labelled, make_once
from kbgym.progress import ProgressCallback
from kbgym.search.bm25 import BM25Index, Weighed, WordIndex, WordPart, weigh
from kbgym.search.index import Hit, Layered
from kbgym.search.terms import terms

if TYPE_CHECKING:
    from kbgym.backends.postgres.base import DatabaseBase
    from kbgym.backends.postgres.prefetch import Prefetch
    from kbgym.backends.postgres.server import Connection

_LABEL = "terms of kbgym, 2"  # increment if the terms or tables change
_BATCH = 4096  # texts per transaction while the tables are filled
_READ = 5_000  # texts of a base read with one query
_LONGEST, _MOST_TERMS = 500, 20_000  # characters of a lexeme and lexemes of a text, within the limits of tsvector
_SCANNED = 10_000  # matching texts from which the best are proposed
_LEAST, _WIDTH = 256, 4  # texts proposed: at least, and for each result
_COMBINED = 5  # rarest terms of which several must match, if all are common
_CACHED_TERMS, _CACHED_TEXTS, _CACHED_IDS = 200_000, 10_000, 500_000

_CREATE = """CREATE TABLE word_texts (number bigint PRIMARY KEY, id text COLLATE "C" NOT NULL, length int NOT NULL,
    terms tsvector NOT NULL)"""
_FINISH = Path(__file__).with_name("words.sql").read_text(encoding="utf-8")
# Texts by BM25 score with every term frequency counted as 1.
_PROPOSE = """SELECT id FROM (SELECT id, length, terms FROM word_texts WHERE terms @@ %s::tsquery LIMIT %s) AS found
    ORDER BY (SELECT sum(weight) FROM unnest(%s::tsquery[], %s::float8[]) AS wanted (term, weight)
        WHERE terms @@ term) / (1 + %s + %s * length) DESC, id LIMIT %s"""


def _lexeme(term: str) -> str:
    return "'" + term[:_LONGEST].replace("\\", "\\\\").replace("'", "''") + "'"


def make(base: DatabaseBase, tick: ProgressCallback | None, connection: Connection) -> None:
    """Create and fill the tables, or resume where another process was interrupted."""
    if not is_labelled(connection, "word_texts", _LABEL):
        with connection.transaction():
            schema = value_of(connection, "SELECT quote_ident(current_schema())")  # not tables of other schemas
            connection.execute(f"DROP TABLE IF EXISTS {schema}.word_texts, {schema}.word_counts")
            connection.execute(_CREATE)
            connection.execute(f"COMMENT ON TABLE word_texts IS '{_LABEL}'")
    done = highest(connection, "word_texts")
    left = dropwhile(lambda text: text[0] <= done, base.texts())
    while batch := list(islice(left, _BATCH)):
        if tick is not None:
            tick(batch[0][0] - 1, len(base), "words")
        with connection.transaction(), connection.cursor().copy("COPY word_texts FROM STDIN") as copy:
            for number, id, text in batch:
                found = terms(text)
                copy.write_row((number, id, len(found), " ".join(map(_lexeme, sorted(set(found))[:_MOST_TERMS]))))
    with connection.transaction():
        connection.execute(_FINISH)
        connection.execute(f"COMMENT ON TABLE word_counts IS '{_LABEL}'")
    connection.execute("ANALYZE word_texts, word_counts")
    if tick is not None:
        tick(len(base), len(base), "words")


class DatabaseWords(Layered, WordIndex):
    """The texts of a base, and changes in memory on top. Creation fills the tables if necessary.

    Reads from the base are thread-safe and cached, so `ahead` and `read` may prefetch them in another thread before a
    search that must not block.
    """

    prefetch: Prefetch

    def __init__(self, base: DatabaseBase, tick: ProgressCallback | None = None) -> None:
        super().__init__(base, BM25Index(), BM25Index())
        self._held: LRUCache[str, int] = LRUCache(_CACHED_TERMS)
        self._counted: LRUCache[str, tuple[Counter[str], int]] = LRUCache(_CACHED_TEXTS)
        self._proposed: LRUCache[tuple[str, ...], tuple[list[str], bool]] = LRUCache(_CACHED_IDS)
        ready = partial(is_labelled, table="word_counts", label=_LABEL)
        make_once(base, "words", ready, partial(make, base, tick))
        (self.total,) = self.document_frequency([""])

    def begin(self, gone: Sequence[str], changed: Iterable[tuple[str, str]]) -> None:
        """Apply earlier changes; `gone` are all ids of the base among them."""
        for at in range(0, len(gone), _READ):
            self.base.fetch(gone[at : at + _READ])
            self.hidden.load([(id, self.base.text(id)) for id in gone[at : at + _READ]])
        self.own.load(changed)

    def hide(self, id: str) -> bool:
        if id in self.hidden or (text := self.base.text(id)) is None:
            return False
        self.hidden.put(id, text)
        return True

    def text(self, id: str) -> str:
        text: str | None = self.own.text(id) if id in self.own else None if id in self.hidden else self.base.text(id)
        if text is None:
            raise KeyError(id)
        return text

    def parts(self, apart: Collection[str] = ()) -> list[WordPart]:
        hidden = [self.hidden]
        if besides := [(id, self.text(id)) for id in apart if id not in self.own and id in self]:
            hidden.append(BM25Index())
            hidden[1].load(besides)
        return [_BasePart(self, hidden), *self.own.parts(apart)]

    def ahead(self, query: str) -> None:
        """Prefetch the counts needed to weigh a query."""
        self.document_frequency(terms(query))

    def read(self, query: str, end: int, ids: Sequence[str]) -> Callable[[], None]:
        """Return a function that prefetches a query's first hits in the base and the scores of some texts."""
        weighed = weigh(self.parts(), query)

        def read() -> None:
            self.top_k(weighed, end, self.hidden.__contains__)
            self.score(weighed, ids)

        return read

    # -- reading the base ---------------------------------------------------------------------------------------------

    def document_frequency(self, wanted: Sequence[str]) -> list[int]:
        """Return the document frequency of each term."""
        keys = [term[:_LONGEST] for term in wanted]
        found, missing = self._held.get_many(keys)
        if missing:
            found.update(dict.fromkeys(missing, 0))
            found.update(dict(self.base.ask("SELECT term, held FROM word_counts WHERE term = ANY(%s)", [missing])))
            for term in missing:
                self._held.put(term, found[term])
        return [found[key] for key in keys]

    def top_k(self, weighed: Weighed, end: int, hidden: Callable[[str], bool]) -> list[Hit]:
        """Return the first `end` hits that are not hidden."""
        count = end
        while True:
            proposed, is_all = self._propose(weighed, count)
            shown = [id for id in proposed if not hidden(id)]
            if is_all or len(shown) >= 2 * end:
                break
            count = 4 * len(proposed)
        return sorted(self.score(weighed, shown).items(), key=lambda hit: (-hit[1], hit[0]))[:end]

    def score(self, weighed: Weighed, ids: Iterable[str]) -> dict[str, float]:
        """Return the scores of those texts that exist."""
        found, missing = self._counted.get_many(ids)
        if missing:
            self.base.fetch(missing)
        for id in missing:
            if (text := self.base.text(id)) is not None:
                counts = Counter(terms(text))
                found[id] = counts, counts.total()
                self._counted.put(id, found[id])
        return {id: _score(weighed, *counted) for id, counted in found.items()}

    def _propose(self, weighed: Weighed, count: int) -> tuple[list[str], bool]:
        """Return at least `2 * count` ids likely to score highest, and True if no other text has a term."""
        names = tuple(name for name, _ in weighed.terms)
        known = self._proposed.get(names)
        if known is None or not (known[1] or len(known[0]) >= 2 * count):
            most, is_all, found = max(_LEAST, _WIDTH * count), True, dict[str, None]()
            values = [list(map(_lexeme, names)), [scale for _, scale in weighed.terms], weighed.plain, weighed.per_term]
            for query in self._queries(names):
                rows = self.base.ask(_PROPOSE, [query, max(_SCANNED, most), *values, most])
                found.update((id, None) for (id,) in rows)
                if len(found) >= most // 2:
                    is_all = False
                    break
            known = list(found), is_all
            self._proposed.put(names, known, 1 + len(found))
        return known

    def _queries(self, names: Sequence[str]) -> Iterator[str]:
        """Yield a `tsquery` of rare terms, which few texts match, then those of more terms down to one."""
        held = zip(names, self.document_frequency(names), strict=True)
        known = [(_lexeme(name), count) for name, count in held if count]
        totals = accumulate(count for _, count in known)
        rare = [name for (name, _), total in zip(known, totals, strict=True) if total <= _SCANNED]
        if rare:
            yield " | ".join(rare)
        if len(rare) < len(known):
            common = [name for name, _ in known[:_COMBINED]]
            for size in range(len(common), 1, -1):
                yield " | ".join(f"({' & '.join(some)})" for some in combinations(common, size))
            yield " | ".join(name for name, _ in known)


def _score(weighed: Weighed, counts: Counter[str], length: int) -> float:
    score, norm = 0.0, weighed.plain + weighed.per_term * length
    for term, scale in weighed.terms:
        if often := counts.get(term):
            score += often * scale / (often + norm)
    return score


class _BasePart:
    """The visible texts of a base; `hidden` indexes the others. It implements `WordPart`."""

    def __init__(self, words: DatabaseWords, hidden: Sequence[BM25Index]) -> None:
        self._words, self._indexes = words, hidden
        self._parts = [part for index in hidden for part in index.parts()]

    def size(self) -> tuple[int, int]:
        less = [part.size() for part in self._parts]
        return len(self._words.base) - sum(n for n, _ in less), self._words.total - sum(total for _, total in less)

    def document_frequency(self, terms: Sequence[str]) -> list[int]:
        less = [part.document_frequency(terms) for part in self._parts]
        return [held - sum(hidden) for held, *hidden in zip(self._words.document_frequency(terms), *less, strict=True)]

    def top_k(self, weighed: Weighed, end: int) -> list[Hit]:
        return self._words.top_k(weighed, end, self._is_hidden)

    def score(self, weighed: Weighed, ids: Sequence[str]) -> dict[str, float]:
        return self._words.score(weighed, [id for id in ids if not self._is_hidden(id)])

    def _is_hidden(self, id: str) -> bool:
        return any(id in index for index in self._indexes)
