"""Pagination of a document's links: all of them in order, or those that match a text, best first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from kbgym.gym.actions import Opened
from kbgym.search.terms import terms
from kbgym.store import Store

PAGE_CHARACTERS = 4_000


def page_of_links(store: Store, id: str, page: int, about: str) -> Opened | None:
    """Return a page of the links of a document, or None if one page holds all of them or the page does not exist."""
    links = store[id].links
    store.fetch(links)
    chosen = _matching(store, links, about) if about else links
    pages: list[list[str]] = [[]]
    left = PAGE_CHARACTERS
    for target in chosen:
        size = len(target) + len(store[target].text) + 4
        if size > left and pages[-1]:
            pages.append([])
            left = PAGE_CHARACTERS
        pages[-1].append(target)
        left -= size
    if page > len(pages) or (len(pages) == 1 and not about):
        return None
    return Opened(id, tuple(pages[page - 1]), page, len(pages), len(chosen))


def _matching(store: Store, links: Sequence[str], about: str) -> list[str]:
    """Return the links that share words with a text; those with the most and the rarest words come first."""
    wanted = set(terms(about))
    shared = {id: wanted.intersection(terms(store[id].text)) for id in links}
    frequency = Counter(term for found in shared.values() for term in found)
    # Rounded, because the last bit of a logarithm differs between machines.
    rarity = {term: round(math.log1p(len(links) / count), 9) for term, count in frequency.items()}
    scores = {id: sum(sorted(rarity[term] for term in found)) for id, found in shared.items() if found}
    return sorted(scores, key=lambda id: -scores[id])
