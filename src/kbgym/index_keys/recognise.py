"""Recognition of the key that a sentence names, and of sentences that say the same.

The value is matched first; the other words must identify the key or carry no meaning. Any other sentence ("Residents of
X born in 1950", two people, a value and a person) names no key, because a guess could mistake an index for one with
other members. Case, articles, full stops, plurals and word order are ignored.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import NamedTuple

import msgspec

from kbgym.index_keys import vocabulary
from kbgym.index_keys.vocabulary import many, telling, tokens, words_of

PERSON = "person"
_MOST_WORDS = 40  # limit on the length of an index sentence


class IndexKey(msgspec.Struct, frozen=True):
    """The subject of an index: a name (`person`), all people with an attribute (`job`), a relation (`friend`).

    With `then`, an attribute of each of those people ("Cities of people whose job is tanner"). A
    relation over another is written with a full stop: `spouse.friend`.
    """

    kind: str
    value: str
    then: str = ""

    @property
    def base(self) -> IndexKey:
        return IndexKey(self.kind, self.value)


class Span(NamedTuple):
    """A known value in a sentence: its first and last word, its kind, and its usual spelling."""

    start: int
    end: int
    kind: str
    value: str


_LONGEST = max(map(len, vocabulary.RELATION_OF_WORDS))
_STATES = frozenset(vocabulary.TABLES["words"]["states"].split())


@lru_cache(maxsize=200_000)
def names(text: str, key: IndexKey) -> bool:
    """Return True if a sentence names this key and nothing else."""
    words, of = words_of(text), key.kind if key.kind in vocabulary.KIND_WORDS else PERSON
    return any(
        words[start : start + len(form)] == form and _read(words, start, start + len(form), of) == (key.kind, key.then)
        for form in _forms(of, key.value)
        for start in range(len(words) - len(form) + 1)
    )


@lru_cache(maxsize=100_000)
def _forms(kind: str, value: str) -> tuple[tuple[str, ...], ...]:
    """Return the spellings of a value: unchanged; a job or hobby in the plural; a date in words."""
    forms = [value]
    if kind in ("job", "hobby"):
        forms.append(many(value))
    elif kind == "born":
        try:
            day = date.fromisoformat(value)
        except ValueError:
            pass
        else:
            forms += [f"{day:%B} {day.day}, {day.year}", f"{day.day} {day:%B} {day.year}"]
    return tuple(dict.fromkeys(words for form in forms if (words := words_of(form))))


def _read(words: tuple[str, ...], start: int, end: int, of: str) -> tuple[str, str] | None:
    """Return the kind and `then` given by the words around a value of this kind, or None if there are other words."""
    if len(words) > _MOST_WORDS:
        return None
    before, after = words[:start], words[end:]
    if of != PERSON:
        rest = telling((*before, *after)) - vocabulary.KIND_WORDS[of]
        asked = {vocabulary.ASKED_BY_WORD.get(word) for word in rest}
        if not rest:
            return of, ""
        return (of, then) if len(asked) == 1 and (then := asked.pop()) is not None and then != of else None
    if after and after[0] in _STATES:
        return None
    path: list[str] = []
    then, rest_of = "", []
    # Outwards from the name: "friends of P's spouse" is the spouse first, then the friends.
    for word in (*_related(after), *reversed(_related(before))):
        if isinstance(word, tuple):
            if then:
                return None
            path.append(vocabulary.RELATION_OF_WORDS[word])
        elif (attribute := vocabulary.ASKED_BY_WORD.get(word)) is not None:
            if not path or then not in ("", attribute):
                return None
            then = attribute
        else:
            rest_of.append(word)
    if not telling(rest_of) <= (vocabulary.RELATION_WORDS if path else vocabulary.PERSON_WORDS):
        return None
    for general, halves in vocabulary.HALVES.items():
        if {general, *halves} <= set(path):  # "Siblings of P: brothers, sisters" says one thing twice
            path = [relation for relation in path if relation not in halves]
    return ".".join(path) or PERSON, then


def _related(words: tuple[str, ...]) -> list[str | tuple[str, ...]]:
    """Return the words, with those that together name a relation joined."""
    found: list[str | tuple[str, ...]] = []
    place = 0
    while place < len(words):
        for length in range(min(_LONGEST, len(words) - place), 0, -1):
            if words[place : place + length] in vocabulary.RELATION_OF_WORDS:
                found.append(words[place : place + length])
                place += length
                break
        else:
            found.append(words[place])
            place += 1
    return found


class KeyVocabulary:
    """Known names and values, and the sentences that name them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], dict[tuple[str, str], None]] = {}
        self._longest = 0

    def know(self, kind: str, value: str) -> None:
        for words in _forms(kind, value):
            self._known.setdefault(words, {})[kind, value] = None
            self._longest = max(self._longest, len(words))

    def spans(self, text: str) -> list[Span]:
        """Return the names and values in a sentence, the longest at each place; a word may have two meanings."""
        words = words_of(text)
        found: list[Span] = []
        start = 0
        while start < len(words):
            for length in range(min(self._longest, len(words) - start), 0, -1):
                if known := self._known.get(words[start : start + length]):
                    found += [Span(start, start + length, kind, value) for kind, value in known]
                    start += length
                    break
            else:
                start += 1
        return found

    def key(self, text: str, shared: IndexKey | None = None) -> IndexKey | None:
        """Return the one key a sentence names, or None if it names none or the key is ambiguous.

        `shared` is the key that most of its linked documents state. It is used if the sentence's own words name no key
        and nothing else.
        """
        if (key := self._named(text)) is not None or shared is None or worded_key(text) is not None:
            return key
        return shared if all(span.value == shared.value for span in self.spans(text)) else None

    def _named(self, text: str) -> IndexKey | None:
        words = words_of(text)
        keys: dict[IndexKey, None] = {}
        for start, end, kind, value in self.spans(text) if len(words) <= _MOST_WORDS else ():
            if (read := _read(words, start, end, kind)) is not None:
                keys[IndexKey(read[0], value, read[1])] = None
        if len(keys) < 2:
            return next(iter(keys), None)
        # If a word is both a job and a hobby and the context does not decide, use the first.
        alike = len({key.value for key in keys}) == 1 and all(key.kind in vocabulary.KIND_WORDS for key in keys)
        return min(keys, key=lambda key: key.kind) if alike else None


# -- without knowing any value ----------------------------------------------------------------------------------------

_who, _shapes = vocabulary.TABLES["shapes"]["who"], vocabulary.TABLES["shapes"]
_SHAPES = [
    (kind, re.compile(shape.replace("WHO", _who), re.I))
    for kind in ("job", "hobby", "city", "born")
    for shape in _shapes[kind]
]
_OF = re.compile(r"(?:all |the )*+(.+?) of (.+)", re.I)
_POSSESSIVE = re.compile(r"(.+?)['’]s? (.+)")
_ENDS = " \t.:;!"


@lru_cache(maxsize=50_000)
def worded_key(text: str) -> IndexKey | None:
    """Return the key of a sentence in one of the usual wordings of indexes, for any value; never a bare name."""
    sentence = " ".join(text.split()).strip(_ENDS)
    for kind, shape in _SHAPES:
        if match := shape.fullmatch(sentence):
            return IndexKey(kind, match[1])
    if match := _OF.fullmatch(sentence):
        said = words_of(match[1])
        if (relation := vocabulary.RELATION_OF_WORDS.get(said)) is not None:
            return IndexKey(relation, match[2])
        asked = {vocabulary.ASKED_BY_WORD.get(word) for word in telling(said)}
        if len(asked) == 1 and (then := asked.pop()) is not None:
            base = worded_key(match[2])
            return IndexKey(base.kind, base.value, then) if base is not None and not base.then else None
    if match := _POSSESSIVE.fullmatch(sentence):
        relation = vocabulary.RELATION_OF_WORDS.get(words_of(match[2]))
        return None if relation is None else IndexKey(relation, match[1])
    return None


# -- the same index, the same sentence ---------------------------------------------------------------------------------
# Two indexes of one key are the same index, whatever their words ("Interpreters", "People whose job is interpreter").

_ABOUT = re.compile(
    r"\A(?:(?:(?:all|everything|documents?|facts?)(?: known)? )?about|(?:an? |the )?(?:index|list|profile) of)"
    r"(?: all)? ",
    re.I,
)


def same_key(one: str, other: str) -> bool:
    """Return True if two sentences are certainly indexes of one key. A bare value is not an index of its holders."""
    for text, twin in ((one, other), (other, one)):
        key = worded_key(text)
        if key is not None and words_of(twin) != words_of(key.value) and names(twin, key):
            return True
    bare = [words_of(_ABOUT.sub("", text.strip(), count=1)) for text in (one, other)]
    return bool(bare[0]) and bare[0] == bare[1] and words_of(one) != words_of(other)


class RuleJudge:
    """Duplicates have the same names and the same words, each in the same order, and the same polarity.

    Stop words do not count, and synonyms in index sentences are treated as one word. In doubt the answer is no: a
    redundant document costs little, but a wrong merge loses a fact.
    """

    name = "rule"

    async def duplicate(self, candidate: str, existing: str) -> bool:
        names, polarity, words = signature(candidate)
        return bool(names or words) and (names, polarity, words) == signature(existing)


_SMALL = frozenset(vocabulary.TABLES["comparison"]["small"].split())
_NEGATIONS = frozenset(vocabulary.TABLES["comparison"]["negations"].split())
_SYNONYMS = {word: row.split()[0] for row in vocabulary.TABLES["comparison"]["synonyms"] for word in row.split()}


def signature(text: str) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """Return the terms the rule compares: names and signs in order, negation, and other words with synonyms folded."""
    names: list[str] = []
    words: dict[str, None] = {}
    negations = 0
    for token in tokens(text):
        word = token.removesuffix("'s").removesuffix("’s")
        small = word.casefold()
        if small in _NEGATIONS:
            negations += 1
        elif small in _SMALL:
            continue
        elif small in _SYNONYMS:
            words[_SYNONYMS[small]] = None
        elif word[0].isupper() or not word[0].isalpha() or not (names or words):
            # The first word of a sentence may be capitalised anyway, so the first that counts is treated as a name.
            names.append(small)
        else:
            words[small] = None
    return tuple(names), negations % 2, tuple(words)
