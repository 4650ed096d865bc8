"""Which documents are members of which keys, by what their sentences state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kbgym.agents.reference.language import ATTRIBUTES, Fact, facts
from kbgym.index_keys import IndexKey

INDEXED = tuple(attribute for attribute in ATTRIBUTES if attribute != "gender")


def keys_of(stated: Iterable[Fact]) -> list[IndexKey]:
    """The keys a document belongs under: the person it is about, and the attribute it gives."""
    keys: dict[IndexKey, None] = {}
    for fact in stated:
        keys[IndexKey("person", fact.about)] = None
        if fact.relation in INDEXED:
            keys[IndexKey(fact.relation, fact.value)] = None
    return list(keys)


def tells(text: str, relation: str, person: str) -> bool:
    """Whether a document of a person's own states one of their relations."""
    for fact in facts(text):
        if fact.about == person and fact.relation == relation and fact.subject == person:
            return True
        if relation == "child" and fact.about == fact.value == person and fact.relation in ("mother", "father"):
            return True
    return False


def shared_key(texts: Sequence[str]) -> IndexKey | None:
    """The key that most of these documents state, the narrowest there is: what an index that links to them is of."""
    counts: Counter[IndexKey] = Counter()
    for text in texts:
        stated = facts(text)
        relations = {fact.relation for fact in stated if fact.relation not in ATTRIBUTES} | {"child"}
        about = {fact.about for fact in stated}
        told = [
            IndexKey(relation, person) for person in about for relation in relations if tells(text, relation, person)
        ]
        counts.update({*keys_of(stated), *told})
    if len(texts) < 2 or not counts:
        return None
    # Friends of Ann, all of them, are more than whatever concerns Ann.
    key, most = max(counts.items(), key=lambda one: (one[1], one[0].kind != "person", one[0].kind, one[0].value))
    return key if 2 * most > len(texts) else None


def belongs(text: str, key: IndexKey) -> bool:
    """Whether a document is a member of a key: it gives somebody that attribute, or it is about that person."""
    return key in keys_of(facts(text))


def concerns(text: str, key: IndexKey) -> bool:
    """Whether a result says that more may follow: it is a member, or at least names the person."""
    if key.kind != "person":
        return belongs(text, key)
    return any(key.value in (fact.about, fact.subject, fact.value) for fact in facts(text))
