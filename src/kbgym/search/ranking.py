"""Pagination of a ranking in which documents that are set apart do not displace others.

A page has its full number of plain documents. Documents set apart, such as indexes, are added if they rank above the
page's last plain document, up to a limit per page; the others move to the next page. Every document is on exactly one
page, and a plain document is on the same page as if nothing were set apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # replay uses this module without numpy
    from kbgym.search.index import Fetch

Rank = tuple[int, str]

FIRST = 50  # hits fetched first


def page_apart(ranked: Iterable[str], is_apart: Callable[[str], bool], page: int, size: int, most: int) -> list[str]:
    """Return one page, best first; [] past the last one."""
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
    """Return a page with the corrections of each superseded document inserted before it."""
    found: dict[str, None] = {}
    for id in ids:
        found.update(dict.fromkeys((*superseded_by(id), id)))
    return list(found)


def whole_ranking(search: Fetch) -> Iterator[str]:
    """Yield every id of a ranking, fetched in batches that double in size, since few pages are usually needed."""
    offset, limit = 0, FIRST
    while hits := search(offset, limit):
        yield from (id for id, _ in hits)
        offset, limit = offset + len(hits), 2 * limit
