"""Does a sentence state an answer instead of pointing to it?

An index names its key; a materialised answer tells what is under it: it recites members ("Friends of P: A, B and C"),
counts them, or states a fact ("The baker living in X is A"). With a world's truth this is checked against the true
members; without, only by the shape of the sentence and by what the linked documents say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from kbgym.agents.reference.language import facts
from kbgym.analysis.keys import NUMBERS, Resolver, steps_in
from kbgym.characters import number_in
from kbgym.naming import tokens, words_of
from kbgym.worlds.truth import ATTRIBUTES, Truth
from kbgym.worlds.world import Key

_TELLS = re.compile(r":|=| is | are ")
_NOBODY = frozenset("people everyone everybody anyone person persons those someone all each every who".split())


def states_answer(text: str, resolver: Resolver, truth: Truth) -> bool:
    """Whether a sentence tells its key's members, or one true fact.

    It does if it names two true members of what it would be an index of, or the only one, or one behind a colon or
    "is"; if it gives their number; if it gives a person an attribute the person has; if it is a sentence of the world.
    """
    people = {one.value for one in resolver.named(text) if one.kind == "person"}
    if not people:
        return False
    if any(fact.about in people for fact in facts(text)):
        return True
    words = words_of(text)
    numbers = {NUMBERS.get(word, number_in(word)) for word in words}
    for key in resolver.keys_if_alone(text):
        members = truth.recitable(key)
        told = len(members & (people - {key.value}))
        if told >= 2 or (told == 1 and key.kind != "person" and (len(members) == 1 or _TELLS.search(text))):
            return True
        if key.kind not in (*ATTRIBUTES, "person") and len(members) in numbers:
            return True
    if steps_in(words):
        return False  # "Friends of P whose job is J" narrows a relation; it says nothing of P's own job
    values = [Key(one.kind, one.value) for one in resolver.named(text) if one.kind != "person"]
    return any(truth.members(key) & people for key in values)


def seems_answer(text: str, targets: Sequence[str]) -> bool:
    """The same without a truth: a sentence of a known shape, or one that names what sets its targets apart."""
    for fact in facts(text):
        about = words_of(fact.about)
        if about and not _NOBODY.intersection(about):
            return True
    mine = set(words_of(text))
    written = [" ".join(word for word in tokens(target) if word[0].isupper()) for target in targets]
    names = [{word for word in words_of(large) if word in mine} for large in written]
    shared = Counter(word for words in names for word in words)
    apart = [words for words in names if any(shared[word] == 1 for word in words)]
    return len(apart) >= 2
