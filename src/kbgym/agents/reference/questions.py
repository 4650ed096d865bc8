"""Parsing of questions for the reference agents: a small grammar from text to expressions over sets of people.

    "Which friend of Ann is also a friend of Bob?"  ->  Names(Both(Related("friend", Person("Ann")), Related(...)))

Phrases nest without limit, so the twenty-six templates of the people universe and PhantomWiki's chains are the same
few rules. A question outside the grammar gives None, and the reader then falls back to plain search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from kbgym.index_keys import IndexKey
from kbgym.index_keys.vocabulary import SINGULAR


class _Expression(msgspec.Struct, frozen=True):
    pass


class NamedPerson(_Expression, frozen=True):
    name: str


class Having(_Expression, frozen=True):
    """Everyone with an attribute."""

    attribute: str
    value: str


class Related(_Expression, frozen=True):
    """Everyone who is `relation` of someone in `of`."""

    relation: str
    of: People


class Both(_Expression, frozen=True):
    one: People
    other: People


class Either(_Expression, frozen=True):
    one: People
    other: People


class Oldest(_Expression, frozen=True):
    of: People


People = NamedPerson | Having | Related | Both | Either | Oldest


class Names(_Expression, frozen=True):
    """The names of the people, and the separator that joins several names in the answer."""

    of: People
    joiner: str = ", "


class Value(_Expression, frozen=True):
    """An attribute of each person."""

    attribute: str
    of: People


class Count(_Expression, frozen=True):
    """The number of people."""

    of: People


class CountEach(_Expression, frozen=True):
    """The number of each person's `relation`s."""

    relation: str
    of: People


Query = Names | Value | Count | CountEach

_ATTRIBUTE = {"job": "job", "occupation": "job", "hobby": "hobby", "city": "city", "date of birth": "born"}
_NAMED = "|".join(_ATTRIBUTE)


class _OutsideGrammar(Exception):
    """A phrase is no name and no known form."""


def parse_question(text: str) -> Query | None:
    question = text.strip().removesuffix("?").strip()
    for pattern, build in _QUESTIONS:
        if match := re.fullmatch(pattern, question):
            try:
                return build(match)
            except _OutsideGrammar:
                continue
    return None


def _people(phrase: str) -> People:
    """Parse a noun phrase: a name, `the R of ...`, `the J who lives in ...`, `the person whose A is V`."""
    phrase = phrase.strip()
    for pattern, build in _PHRASES:
        if match := re.fullmatch(pattern, phrase):
            return build(match)
    if phrase[:1].isupper():
        return NamedPerson(phrase)
    raise _OutsideGrammar


def _relation(word: str) -> str:
    relation: str | None = SINGULAR.get(word)
    if relation is None:
        raise _OutsideGrammar
    return relation


def _related(relation: str, phrase: str) -> People:
    return Related(_relation(relation), _people(phrase))


_PHRASES: list[tuple[str, Callable[[re.Match[str]], People]]] = [
    (rf"the person whose ({_NAMED}) is (.+)", lambda m: Having(_ATTRIBUTE[m[1]], m[2])),
    (rf"the ([^,]+?) of (the person whose (?:{_NAMED}) is .+)", lambda m: _related(m[1], m[2])),
    (r"the (.+?) who lives in the city of (.+)", lambda m: Both(Having("job", m[1]), Having("city", m[2]))),
    (
        r"the (.+?) in the city of (.+?) whose hobby is (.+)",
        lambda m: Both(Both(Having("job", m[1]), Having("city", m[2])), Having("hobby", m[3])),
    ),
    (r"the (.+?) whose hobby is (.+)", lambda m: Both(Having("job", m[1]), Having("hobby", m[2]))),
    (r"the oldest (.+?) of (.+)", lambda m: Oldest(_related(m[1], m[2]))),
    (r"the (.+?) of (.+)", lambda m: _related(m[1], m[2])),
]
_QUESTIONS: list[tuple[str, Callable[[re.Match[str]], Query]]] = [
    (r"Who is older, (.+) or (.+)", lambda m: Names(Oldest(Either(NamedPerson(m[1]), NamedPerson(m[2]))))),
    (r"Who is (the .+)", lambda m: Names(_people(m[1]))),
    (rf"What is the ({_NAMED}) of (.+)", lambda m: Value(_ATTRIBUTE[m[1]], _people(m[2]))),
    (r"In which (city) does (.+) live", lambda m: Value(_ATTRIBUTE[m[1]], _people(m[2]))),
    (r"How many (.+) of (.+) have the job of (.+)", lambda m: Count(Both(_related(m[1], m[2]), Having("job", m[3])))),
    (r"How many (.+?) does (.+) have", lambda m: CountEach(_relation(m[1]), _people(m[2]))),
    (
        r"Which (.+?) of (.+) is (?:also )?an? (.+?) of (.+)",
        lambda m: Names(Both(_related(m[1], m[2]), _related(m[3], m[4])), " and "),
    ),
    (r"Whose spouse has the job of (.+)", lambda m: Names(Related("spouse", Having("job", m[1])))),
    (r"Whose spouse is (.+)", lambda m: Names(Related("spouse", _people(m[1])))),
]


def named_keys(query: Query | People | None) -> Iterator[IndexKey]:
    """Yield the keys a question names, in the order of its words: people, and attribute values."""
    match query:
        case NamedPerson(name):
            yield IndexKey("person", name)
        case Having(attribute, value):
            yield IndexKey(attribute, value)
        case Both(one, other) | Either(one, other):
            yield from named_keys(one)
            yield from named_keys(other)
        case Related(_, of) | Oldest(of) | Names(of) | Count(of) | Value(_, of) | CountEach(_, of):
            yield from named_keys(of)


def further_keys(query: Query | People | None) -> Iterator[IndexKey]:
    """Yield narrower keys that answer a question at once or with less to read than the keys it names.

    Two steps (the cities of everyone with a job), or one relation of a person instead of all that is known.
    """
    match query:
        case Both(one, Having(attribute, _)):
            yield from _then(one, attribute)
            yield from further_keys(one)
        case Both(Related(relation, NamedPerson(name)), Related(relation_too, NamedPerson(other))):
            yield IndexKey(relation, name)
            yield IndexKey(relation_too, other)
        case Oldest(of):
            yield from _then(of, "born")
            yield from further_keys(of)
        case Value(attribute, of):
            yield from _then(of, attribute)
            yield from further_keys(of)
        case Names(of) | Count(of) | Related(_, of) | CountEach(_, of):
            yield from further_keys(of)


def _then(of: People, attribute: str) -> Iterator[IndexKey]:
    match of:
        case Having(kind, value) if kind != attribute:
            yield IndexKey(kind, value, attribute)
        case Related(relation, NamedPerson(name)):
            yield IndexKey(relation, name, attribute)
        case Both(one, _):
            yield from _then(one, attribute)
