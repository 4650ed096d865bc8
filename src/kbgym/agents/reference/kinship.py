"""Relations between people: which are compositions of others, and how their names are spelt in the plural.

A path is walked outwards from a person: the aunt of X is the sister of a parent of X, so ("parent", "sister").
"""

from __future__ import annotations

from functools import lru_cache

from kbgym.agents.reference.language import plural

BASIC = "spouse husband wife parent father mother child son daughter sibling brother sister friend".split()

# What a person of known gender is called.
GENDERED = {
    "father": ("parent", "male"),
    "mother": ("parent", "female"),
    "son": ("child", "male"),
    "daughter": ("child", "female"),
    "brother": ("sibling", "male"),
    "sister": ("sibling", "female"),
    "husband": ("spouse", "male"),
    "wife": ("spouse", "female"),
}

PATHS: dict[str, tuple[str, ...]] = {
    "grandparent": ("parent", "parent"),
    "grandfather": ("parent", "father"),
    "grandmother": ("parent", "mother"),
    "grandchild": ("child", "child"),
    "grandson": ("child", "son"),
    "granddaughter": ("child", "daughter"),
}


def path(relation: str) -> tuple[str, ...] | None:
    """How a derived relation is walked, None for one that documents state themselves."""
    return PATHS.get(relation)


@lru_cache(maxsize=1_000)
def singular(word: str) -> str | None:
    """The relation a word names, in the singular or the plural; None for a word that names none."""
    for relation in (*BASIC, *PATHS):
        if word in (relation, plural(relation)):
            return relation
    return None
