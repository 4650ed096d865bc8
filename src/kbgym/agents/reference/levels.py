"""Levels: an index with more documents than a read should carry becomes an index of indexes.

Only a narrower key is split ("Cities of people whose job is tanner"): whoever reads its index looks for one value, so
the documents are put in the order of the values they state and cut into parts that say from where to where they go. A
reader then reads the index and the one part it needs. Everybody with a job, or everything about a person, is read
whole whatever it is cut into, so there a cut would cost actions and save nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kbgym.agents.reference.language import IndexKey, facts, index_key

Shown = tuple[str, str]

# How much of the most an index may carry one part is given: a part is read after the list of all parts, which is the
# longer for it, so parts of a third keep both short up to ten times the most.
_SHARE = 3


def split(key: IndexKey, documents: Sequence[Shown], most: int) -> list[tuple[IndexKey, list[str]]]:
    """The parts of a narrower key, each with its documents; a value is never cut in two. One part is no split."""
    groups: dict[str, list[str]] = {}
    for id, text in documents:
        groups.setdefault(stated_value(text, key.then), []).append(id)
    size = -(-most // _SHARE)
    parts: list[tuple[IndexKey, list[str]]] = []
    values: list[str] = []
    ids: list[str] = []
    for place, value in enumerate(sorted(groups), 1):
        values.append(value)
        ids += groups[value]
        if len(ids) >= size or place == len(groups):
            parts.append((msgspec.structs.replace(key, part=(values[0], values[-1])), ids))
            values, ids = [], []
    return parts


def stated_value(text: str, attribute: str) -> str:
    return next((fact.value for fact in facts(text) if fact.relation == attribute), "")


def part_of(text: str, key: IndexKey) -> IndexKey | None:
    """The part of this key that a document is the index of, None for any other document."""
    found = index_key(text)
    return found if found is not None and found.part is not None and found.whole == key else None


def holds(part: IndexKey, value: str) -> bool:
    """Whether a value lies where a part goes from and to."""
    return part.part is not None and part.part[0] <= value <= part.part[1]


def parts_for(shown: Iterable[Shown], key: IndexKey, value: str | None) -> list[str]:
    """The indexes among these documents that are parts of the key: the one for a value, or all of them."""
    parts = [(id, part) for id, text in shown if (part := part_of(text, key)) is not None]
    return [id for id, part in parts if value is None or holds(part, value)]
