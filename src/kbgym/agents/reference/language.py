"""Parsing of sentences for the reference agents: facts, and index documents.

The parser knows English sentence patterns, not the world: it uses nothing but the sentence. A sentence it cannot parse
is not a fact. The same patterns serve the people universe and PhantomWiki.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from kbgym.index_keys import IndexKey, names
from kbgym.index_keys.vocabulary import ASKED, plural, telling, words_of


class Fact(msgspec.Struct, frozen=True):
    """`relation` of `subject` is `value`: friend(Ann) = Bob.

    `about` is the person the sentence mentions first; `whole` is True if it states all values at once ("The friends of
    Ann are Bob, Cy.").
    """

    relation: str
    subject: str
    value: str
    about: str
    whole: bool = False


ATTRIBUTES = ("job", "hobby", "city", "born", "gender")

WORDS: dict[str, dict[str, Any]] = tomllib.loads(
    (files("kbgym.agents.reference") / "wordings.toml").read_text(encoding="utf-8")
)
_RELATION_OF_WORD = {word: relation for relation, words in WORDS["named"].items() for word in words}
_SHAPES = {
    relation: re.compile(sentence.format(about="(?P<about>.+?)", value="(?P<value>.+)"))
    for relation, sentence in WORDS["sentences"].items()
}
_STATEMENT = re.compile(r"The (?P<relation>date of birth|[a-z]+) of (?P<about>.+?) (?:is|are) (?P<values>.+)")


@lru_cache(maxsize=200_000)
def facts(text: str) -> tuple[Fact, ...]:
    """Return the facts a sentence states; a statement about "these people" is not a fact."""
    stated = _stated(text.strip().removesuffix("."))
    return stated if stated and telling(words_of(stated[0].about)) - _ANYBODY else ()


_ANYBODY = {"people", "person", "persons", "someone", "somebody"}


def _stated(sentence: str) -> tuple[Fact, ...]:
    for relation, shape in _SHAPES.items():
        if match := shape.fullmatch(sentence):
            about, value = match["about"], match["value"]
            if relation in ("mother", "father"):
                return (Fact(relation, value, about, about),)
            return (Fact(relation, about, _date(value) if relation == "born" else value, about),)
    match = _STATEMENT.fullmatch(sentence)
    if match is None or (named := _RELATION_OF_WORD.get(match["relation"])) is None:
        return ()
    return tuple(Fact(named, match["about"], value, match["about"], True) for value in match["values"].split(", "))


def _date(text: str) -> str:
    """Return a date in ISO format from "September 16, 1920" or an ISO date."""
    try:
        return datetime.strptime(text, "%B %d, %Y").date().isoformat()
    except ValueError:
        return text


# -- indexes ----------------------------------------------------------------------------------------------------------


def index_text(key: IndexKey) -> str:
    """Return the text of an index for a key: it names the key and no member."""
    if key.then:
        base = index_text(key.base)
        return f"{ASKED[key.then][0].capitalize()} of {base[0].lower()}{base[1:]}"
    return str(WORDS["indexes"].get(key.kind, f"{plural(key.kind).capitalize()} of {{}}").format(key.value))


def is_index(text: str, key: IndexKey) -> bool:
    """Return True if a sentence names this key and says nothing else."""
    return not facts(text) and names(text, key)


# -- members of keys --------------------------------------------------------------------------------------------------

INDEXED = tuple(attribute for attribute in ATTRIBUTES if attribute != "gender")


def keys_of(stated: Iterable[Fact]) -> list[IndexKey]:
    """Return the keys a document belongs under: the person it is about, and the attribute it states."""
    keys: dict[IndexKey, None] = {}
    for fact in stated:
        keys[IndexKey("person", fact.about)] = None
        if fact.relation in INDEXED:
            keys[IndexKey(fact.relation, fact.value)] = None
    return list(keys)


def tells(text: str, relation: str, person: str) -> bool:
    """Return True if a document of a person's own states one of their relations."""
    for fact in facts(text):
        if fact.about == person and fact.relation == relation and fact.subject == person:
            return True
        if relation == "child" and fact.about == fact.value == person and fact.relation in ("mother", "father"):
            return True
    return False


def shared_key(texts: Sequence[str]) -> IndexKey | None:
    """Return the narrowest key that most of these documents state, which is the key of an index that links to them."""
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
    # A person's friends, if complete, are more specific than everything about that person.
    key, most = max(counts.items(), key=lambda one: (one[1], one[0].kind != "person", one[0].kind, one[0].value))
    return key if 2 * most > len(texts) else None


def belongs(text: str, key: IndexKey) -> bool:
    """Return True if a document is a member of a key: it gives a person that attribute, or is about that person."""
    return key in keys_of(facts(text))


def concerns(text: str, key: IndexKey) -> bool:
    """Return True if a result suggests further members: it is a member, or at least names the person."""
    if key.kind != "person":
        return belongs(text, key)
    return any(key.value in (fact.about, fact.subject, fact.value) for fact in facts(text))
