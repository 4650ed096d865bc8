"""PhantomWiki's relations: what its articles say in so many words, and how the rest is walked over that.

Pure tables; it knows no people. The walks give, for every person and relation, the same people as the Prolog rules the
package ships.
"""

from __future__ import annotations

# A sentence of an article lists everybody who stands in one of these relations.
STATED = ("mother", "father", "sister", "brother", "son", "daughter", "wife", "husband", "friend")

# Either of two stated relations.
EITHER = {
    "parent": ("mother", "father"),
    "child": ("son", "daughter"),
    "sibling": ("sister", "brother"),
    "spouse": ("wife", "husband"),
}

# Everything else is a walk: whom one meets by taking these steps in turn.
WALKS = {
    "niece": ("sibling", "daughter"),
    "nephew": ("sibling", "son"),
    "aunt": ("parent", "sister"),
    "uncle": ("parent", "brother"),
    "grandparent": ("parent", "parent"),
    "grandmother": ("parent", "mother"),
    "grandfather": ("parent", "father"),
    "grandchild": ("child", "child"),
    "granddaughter": ("child", "daughter"),
    "grandson": ("child", "son"),
    "great_grandparent": ("grandparent", "parent"),
    "great_grandmother": ("grandparent", "mother"),
    "great_grandfather": ("grandparent", "father"),
    "great_grandchild": ("grandchild", "child"),
    "great_granddaughter": ("grandchild", "daughter"),
    "great_grandson": ("grandchild", "son"),
    "great_aunt": ("grandparent", "sister"),
    "great_uncle": ("grandparent", "brother"),
    "second_aunt": ("great_grandparent", "sister"),
    "second_uncle": ("great_grandparent", "brother"),
    "cousin": ("parent", "sibling", "child"),
    "female_cousin": ("parent", "sibling", "daughter"),
    "male_cousin": ("parent", "sibling", "son"),
    "female_first_cousin_once_removed": ("cousin", "daughter"),
    "male_first_cousin_once_removed": ("cousin", "son"),
    "female_second_cousin": ("parent", "cousin", "daughter"),
    "male_second_cousin": ("parent", "cousin", "son"),
    "mother_in_law": ("spouse", "mother"),
    "father_in_law": ("spouse", "father"),
    "sister_in_law": ("spouse", "sister"),
    "brother_in_law": ("spouse", "brother"),
    "daughter_in_law": ("child", "wife"),
    "son_in_law": ("child", "husband"),
}

# The 45 relations questions ask about. Nobody asks for a "spouse".
RELATIONS = (*STATED, *(name for name in EITHER if name != "spouse"), *WALKS)


def hops(relation: str) -> int:
    """How many sentences one has to read in a row to follow a relation."""
    return sum(map(hops, WALKS[relation])) if relation in WALKS else 1


def spoken(relation: str, plural: bool = False) -> str:
    """A relation in words: great_aunt, great-aunt; father_in_law, fathers-in-law; female_cousin, female cousins."""
    head, law, _ = relation.partition("_in_law")
    head, once, _ = head.partition("_once_removed")
    head = head.replace("great_", "great-").replace("_", " ")
    if plural:
        head = head + "ren" if head.endswith("child") else "wives" if head == "wife" else head + "s"
    return head + ("-in-law" if law else "") + (" once removed" if once else "")
