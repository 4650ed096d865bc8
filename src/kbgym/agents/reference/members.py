"""Which documents are members of which keys, by what their sentences state."""

from __future__ import annotations

from collections.abc import Iterable

from kbgym.agents.reference.language import ATTRIBUTES, Fact, IndexKey, facts

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


def belongs(text: str, key: IndexKey) -> bool:
    """Whether a document is a member of a key: it gives somebody that attribute, or it is about that person."""
    return key in keys_of(facts(text))


def concerns(text: str, key: IndexKey) -> bool:
    """Whether a result says that more may follow: it is a member, or at least names the person."""
    if key.kind != "person":
        return belongs(text, key)
    return any(key.value in (fact.about, fact.subject, fact.value) for fact in facts(text))


_MIRRORS = {"friend": "{} is a friend of {}", "spouse": "{} is married to {}", "parent": "{} is a child of {}"}


def gaps(texts: Iterable[str], key: IndexKey) -> list[str]:
    """Sentences about a person that should be there and are not: a relation told from the other end only.

    Searching for such a sentence costs one action and finds it, where paging on might cost five.
    """
    if key.kind != "person":
        return []
    stated = [fact for text in texts for fact in facts(text)]
    own = {(fact.relation, fact.value) for fact in stated if fact.about == key.value and fact.subject == key.value}
    own |= {("child", fact.subject) for fact in stated if fact.about == fact.value == key.value}
    missing: dict[str, None] = {}
    for fact in stated:
        if fact.whole or key.value not in (fact.subject, fact.value) or fact.about == key.value:
            continue
        other = fact.about
        if fact.relation in ("friend", "spouse") and (fact.relation, other) not in own:
            missing[_MIRRORS[fact.relation].format(key.value, other)] = None
        elif fact.relation in ("mother", "father") and ("parent", other) not in own:
            missing[_MIRRORS["parent"].format(key.value, other)] = None
        elif fact.relation == "parent" and ("child", other) not in own:
            missing[f"{key.value} mother or father of {other}"] = None
    return list(missing)
