"""Relations between people: their composition from other relations, and plural forms.

A path is followed outwards from a person: the aunt of X is the sister of a parent of X, so ("parent", "sister").
"""

from __future__ import annotations

import re
from functools import lru_cache

BASIC = "spouse husband wife parent father mother child son daughter sibling brother sister friend".split()

# Terms for a person of known gender.
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

# Pairs of relations whose union is not named in PhantomWiki's lists.
HALVES = {
    "parent": ("mother", "father"),
    "child": ("daughter", "son"),
    "sibling": ("sister", "brother"),
    "spouse": ("wife", "husband"),
}

PATHS: dict[str, tuple[str, ...]] = {
    "grandparent": ("parent", "parent"),
    "grandfather": ("parent", "father"),
    "grandmother": ("parent", "mother"),
    "grandchild": ("child", "child"),
    "grandson": ("child", "son"),
    "granddaughter": ("child", "daughter"),
    "great-grandparent": ("parent", "parent", "parent"),
    "great-grandfather": ("parent", "parent", "father"),
    "great-grandmother": ("parent", "parent", "mother"),
    "great-grandchild": ("child", "child", "child"),
    "great-grandson": ("child", "child", "son"),
    "great-granddaughter": ("child", "child", "daughter"),
    "aunt": ("parent", "sister"),
    "uncle": ("parent", "brother"),
    "great-aunt": ("parent", "parent", "sister"),
    "great-uncle": ("parent", "parent", "brother"),
    "second aunt": ("parent", "parent", "parent", "sister"),
    "second uncle": ("parent", "parent", "parent", "brother"),
    "niece": ("sibling", "daughter"),
    "nephew": ("sibling", "son"),
    "cousin": ("parent", "sibling", "child"),
    "female cousin": ("parent", "sibling", "daughter"),
    "male cousin": ("parent", "sibling", "son"),
    "female first cousin once removed": ("parent", "sibling", "child", "daughter"),
    "male first cousin once removed": ("parent", "sibling", "child", "son"),
    "female second cousin": ("parent", "parent", "sibling", "child", "daughter"),
    "male second cousin": ("parent", "parent", "sibling", "child", "son"),
    "mother-in-law": ("spouse", "mother"),
    "father-in-law": ("spouse", "father"),
    "sister-in-law": ("spouse", "sister"),
    "brother-in-law": ("spouse", "brother"),
    "daughter-in-law": ("child", "wife"),
    "son-in-law": ("child", "husband"),
}


def path(relation: str) -> tuple[str, ...] | None:
    """Return the path of a derived relation, or None for a relation that documents state themselves."""
    return PATHS.get(relation)


_PLURALS = {"child": "children", "wife": "wives"}


def plural(relation: str) -> str:
    """Return "children" for "child", "sisters-in-law" for "sister-in-law", "first cousins once removed"."""
    head, *rest = re.split(r"(-in-law| once removed)", relation, maxsplit=1)
    for word, many in _PLURALS.items():
        if head.endswith(word):
            return head.removesuffix(word) + many + "".join(rest)
    return head + "s" + "".join(rest)


@lru_cache(maxsize=1_000)
def singular(word: str) -> str | None:
    """Return the relation that a singular or plural word names, or None."""
    for relation in (*BASIC, *PATHS):
        if word in (relation, plural(relation)):
            return relation
    return None
