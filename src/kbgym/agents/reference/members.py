"""Which documents are members of which keys, by what their sentences state."""

from __future__ import annotations

from collections.abc import Iterable

from kbgym.agents.reference.language import ATTRIBUTES, Fact, Key, facts

INDEXED = tuple(attribute for attribute in ATTRIBUTES if attribute != "gender")


def keys_of(stated: Iterable[Fact]) -> list[Key]:
    """The keys a document belongs under: the person it is about, and the attribute it gives."""
    keys: dict[Key, None] = {}
    for fact in stated:
        keys[Key("person", fact.about)] = None
        if fact.relation in INDEXED:
            keys[Key(fact.relation, fact.value)] = None
    return list(keys)


def belongs(text: str, key: Key) -> bool:
    """Whether a document is a member of a key: it gives somebody that attribute, or it is about that person."""
    return key in keys_of(facts(text))


def concerns(text: str, key: Key) -> bool:
    """Whether a result says that more may follow: it is a member, or at least names the person."""
    if key.kind != "person":
        return belongs(text, key)
    return any(key.value in (fact.about, fact.subject, fact.value) for fact in facts(text))
