"""An errand in words, as a curator that reads is told of it: what to write and search for, what is known.

Texts are for whoever renders them to mark as data: `told` gives plain sentences and, apart from them, the documents a
reader of them has not seen yet.
"""

from __future__ import annotations

from collections.abc import Container

from kbgym.policy import Errand, Lookup

_REASONS = {
    "named": "named in this question",
    "asked": "named in an earlier question",
    "incomplete": "its index misses documents that were seen",
    "doubted": "other documents imply one that its index misses",
    "changed": "facts under its index changed",
    "sibling": "of a kind that questions ask for",
}
_MOST_LOOKUPS = 4


def told(errand: Errand, visible: Container[str] = ()) -> tuple[str, list[tuple[str, str]]]:
    """One line about an errand, and the documents it speaks of that are not `visible` already, as (id, text)."""
    parts = [f'"{errand.text}" ({_REASONS[errand.reason]})']
    parts.append(
        f"its index is [{errand.index}], {_many(len(errand.linked), 'link')}" if errand.index else "no index yet"
    )
    if errand.known:
        parts.append(f"belong to it and are not linked: {', '.join(f'[{id}]' for id, _ in errand.known)}")
    if errand.lookups:
        rest = len(errand.lookups) - _MOST_LOOKUPS
        searches = ", then ".join(map(_search, errand.lookups[:_MOST_LOOKUPS]))
        parts.append(f"search for {searches}" + (f", and {rest} more" if rest > 0 else ""))
        parts.append(f"{errand.cost} actions, and one for each page more")
    else:
        what = "link" if errand.index else "add and link"
        parts.append(f"complete: {what}, {_many(errand.cost, 'action')}")
    return "; ".join(parts), [(id, text) for id, text in errand.known if id not in visible]


def _search(lookup: Lookup) -> str:
    at = f'"{lookup.query}"' + (f", page {lookup.page}" if lookup.page > 1 else "")
    return at if lookup.members is None else f"{at} (the page before had {lookup.members or 'none'})"


def _many(count: int, one: str) -> str:
    return f"{count} {one}" + ("" if count == 1 else "s")
