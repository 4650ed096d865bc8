"""Pages of a ranking in which some documents may not push others out.

Set apart: a page has its full number of plain documents, whatever else is ranked among them. Those set apart (indexes,
say) come in addition, where they rank above the page's last plain document: a few a page, the others wait for the next.
So every document stands on exactly one page, a plain one on the page it would have if nothing were set apart.
Spread: a page has only a few documents of one source; the others wait for the next page, unless little else is left.
It knows ids and their order; what is set apart and what a source is, it is told.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # replay uses this file and loads no numpy
    from kbgym.search.index import Fetch, Hit

Rank = tuple[int, str]

FIRST = 50  # hits fetched first


def page_apart(ranked: Iterable[str], is_apart: Callable[[str], bool], page: int, size: int, most: int) -> list[str]:
    """One page, best first; [] past the last one."""
    return next(islice(_pages(ranked, is_apart, size, most), page - 1, page), [])


def _pages(ranked: Iterable[str], is_apart: Callable[[str], bool], size: int, most: int) -> Iterator[list[str]]:
    waiting: deque[Rank] = deque()
    plain: list[Rank] = []
    for rank, id in enumerate(ranked):
        (waiting if is_apart(id) else plain).append((rank, id))
        if len(plain) == size:
            yield _page(plain, waiting, most)
            plain = []
    while plain or waiting:
        yield _page(plain, waiting, most)
        plain = []


def _page(plain: list[Rank], waiting: deque[Rank], most: int) -> list[str]:
    added = [waiting.popleft() for _ in range(min(most, len(waiting)))]
    return [id for _, id in sorted(plain + added)]


def corrections_first(ids: list[str], superseded_by: Callable[[str], tuple[str, ...]]) -> list[str]:
    """Return a page with each superseded document behind its corrections, which take no other document's place."""
    found: dict[str, None] = {}
    for id in ids:
        found.update(dict.fromkeys((*superseded_by(id), id)))
    return list(found)


def whole_ranking(search: Fetch) -> Iterator[str]:
    """Every id of a ranking."""
    return (id for id, _ in _hits(search))


def _hits(search: Fetch) -> Iterator[Hit]:
    """A whole ranking, fetched in stretches that double: few pages are asked for, so little is fetched."""
    offset, limit = 0, FIRST
    while hits := search(offset, limit):
        yield from hits
        offset, limit = offset + len(hits), 2 * limit


class Spread:
    """At most `most` documents of one source on a page of `size`, where the next fifty have others to fill it with."""

    def __init__(self, source_of: Callable[[str], str | None], most: int, size: int) -> None:
        self._source_of, self._most, self._size = source_of, most, size

    def page(self, search: Fetch, offset: int, limit: int) -> list[Hit]:
        """A stretch of the ranking so spread; every document stands in it once."""
        return list(islice(self._spread(_hits(search)), offset, offset + limit))

    def _spread(self, hits: Iterator[Hit]) -> Iterator[Hit]:
        ranked = enumerate(hits)
        waiting: list[tuple[int, Hit]] = []
        while True:
            page: list[tuple[int, Hit]] = []
            later: list[tuple[int, Hit]] = []
            seen: Counter[str | None] = Counter()
            candidates = chain(waiting, islice(ranked, FIRST))
            while len(page) < self._size and (found := next(candidates, None)) is not None:
                source = self._source_of(found[1][0])
                room = source is None or seen[source] < self._most
                (page if room else later).append(found)
                seen[source] += 1
            later += [one for one in waiting if one not in page and one not in later]
            missing = self._size - len(page)
            page, waiting = page + later[:missing], sorted(later[missing:])
            if not page:
                return
            yield from (hit for _, hit in sorted(page))
