"""What key a sentence names: "Residents of X", "X residents", "Friends of P", "P's friends", a bare "P".

The world's own names and values are looked for in the sentence, longest first; what is left must be words that say
which key it is, or words that say nothing. Anything else ("Residents of X born in 1950", two people, a value and a
person) names no single key and is None: an audit that guesses would score an index against the wrong members.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kbgym.worlds.truth import RELATIONS, Truth
from kbgym.worlds.world import Key

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*['’]?")
_SMALL = frozenset(
    "a an the of is are as in on at to for and or who whom whose which that by with from their its".split()
)
_GENERIC = frozenset(
    "index indexes list all every each everyone everybody anyone everything documents document facts fact known about"
    " information record records overview directory hub entry see links page reference set group collection".split()
)
_SAYS_KIND = {
    "city": "people person persons city town residents resident live lives living inhabitants inhabitant citizens"
    " based located home population dwellers",
    "job": "people person persons job jobs occupation occupations profession professions professionals work works"
    " working employed role career holders holder practitioners who're",
    "hobby": "people person persons hobby hobbies pastime pastimes enjoy enjoys enjoying enthusiasts enthusiast lovers"
    " fans hobbyists interest interested practice practise practitioners players do does doing participants",
    "person": "person profile biography bio details summary everything stated regarding concerning own",
}
_KIND_WORDS = {kind: frozenset(words.split()) for kind, words in _SAYS_KIND.items()}
_ANY_KIND = frozenset().union(*_KIND_WORDS.values())
# What a sentence that recites or counts the members says besides naming its key.
_TELLING_VERBS = frozenset("include includes including namely has have had number count total common".split())
NUMBERS = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
_RELATION_FILLER = frozenset("people person persons relation relations relatives family s".split())

_IRREGULAR = {"children": "child", "wives": "wife", "kid": "child", "kids": "child", "spouses": "spouse"}
_COMPOSED = {
    "grandchild": "child.child",
    "grandchildren": "child.child",
    "grandkids": "child.child",
    "grandson": "child.son",
    "granddaughter": "child.daughter",
    "grandparent": "parent.parent",
    "grandfather": "parent.father",
    "grandmother": "parent.mother",
    "aunt": "parent.sister",
    "uncle": "parent.brother",
    "niece": "sibling.daughter",
    "nephew": "sibling.son",
    "cousin": "parent.sibling.child",
    "partner": "spouse",
    "parents-in-law": "spouse.parent",
    "father-in-law": "spouse.father",
    "mother-in-law": "spouse.mother",
    "son-in-law": "child.husband",
    "sons-in-law": "child.husband",
    "daughter-in-law": "child.wife",
    "daughters-in-law": "child.wife",
}
_ASKED = {"job": "job", "occupation": "job", "hobby": "hobby", "hobbie": "hobby", "city": "city", "citie": "city"}
_ASKED |= {"birthdate": "birth", "birthday": "birth"}


class Named(NamedTuple):
    """What the world's vocabulary found in a sentence: where, what kind, the value as the world writes it."""

    start: int
    end: int
    kind: str
    value: str


class Resolver:
    """Keys of one world's sentences."""

    def __init__(self, truth: Truth) -> None:
        self._known: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for name in truth.names:
            self._know("person", name)
        for kind, values in truth.values.items():
            for value in values:
                self._know(kind, value)
                if kind == "job":
                    self._know(kind, value, _plural(value))
        self._longest = max((len(words) for words in self._known), default=0)
        self._keys: dict[str, Key | None] = {}

    def _know(self, kind: str, value: str, written: str | None = None) -> None:
        self._known.setdefault(tuple(words_of(written or value)), []).append((kind, value))

    def key(self, text: str) -> Key | None:
        """The one key a sentence names, or None."""
        if text not in self._keys:
            self._keys[text] = self._resolve(text)
        return self._keys[text]

    def named(self, text: str) -> list[Named]:
        """Every name and value in a sentence, the longest at each place; a word with two meanings comes twice."""
        words = words_of(text)
        found: list[Named] = []
        start = 0
        while start < len(words):
            for length in range(min(self._longest, len(words) - start), 0, -1):
                if known := self._known.get(tuple(words[start : start + length])):
                    found += [Named(start, start + length, kind, value) for kind, value in known]
                    start += length
                    break
            else:
                start += 1
        return found

    def keys_if_alone(self, text: str) -> list[Key]:
        """The keys a sentence would name if all its people, or all but one of them, were left out, numbers too."""
        words, found = words_of(text), self.named(text)
        people = dict.fromkeys(one.value for one in found if one.kind == "person")
        keys: list[Key] = []
        for kept in (None, *people):
            dropped = {
                place
                for one in found
                if one.kind == "person" and one.value != kept
                for place in range(one.start, one.end)
            }
            left = (word for place, word in enumerate(words) if place not in dropped and word not in _TELLING_VERBS)
            key = self.key(" ".join(word for word in left if word not in NUMBERS and not word.isdigit()))
            if key is not None:
                keys.append(key)
        return keys

    def _resolve(self, text: str) -> Key | None:
        words = words_of(text)
        found = self.named(text)
        people = dict.fromkeys(one.value for one in found if one.kind == "person")
        values = {(one.kind, one.value) for one in found if one.kind != "person"}
        if len(people) == 1 and not values:
            place = next(one for one in found if one.kind == "person")
            return _of_person(place, words)
        if people or len({value for _, value in values}) != 1:
            return None
        inside = {place for one in found for place in range(one.start, one.end)}
        rest = _telling(word for place, word in enumerate(words) if place not in inside)
        # Where one word is both a job and a hobby, what is said around it decides.
        fitting = sorted((kind, value) for kind, value in values if rest <= _KIND_WORDS.get(kind, frozenset()))
        return Key(*fitting[0]) if fitting else None


def _of_person(place: Named, words: list[str]) -> Key | None:
    """A person's hub, or a relation: "friends of P" and "P's friends" are one step, "friends of P's spouse" two."""
    before, after = words[: place.start], words[place.end :]
    path: list[str] = []
    rest: list[str] = []
    for word in (*after, *reversed(before)):
        if (steps := _steps(word)) is not None:
            path += steps
        else:
            rest.append(word)
    told = _telling(rest)
    if not path:
        return Key("person", place.value) if told <= _KIND_WORDS["person"] else None
    asked = [step for step in path if step in _ASKED.values()]
    if asked and (path[-1:] != asked or len(path) == 1):
        return None
    return Key(".".join(path), place.value) if told <= _RELATION_FILLER else None


def _steps(word: str) -> list[str] | None:
    """The steps of a path a word stands for, None for a word that names no relation."""
    single = _IRREGULAR.get(word) or word.removesuffix("s")
    for form in (word, single):
        if form in RELATIONS:
            return [form]
        if form in _COMPOSED:
            return _COMPOSED[form].split(".")
        if form in _ASKED:
            return [_ASKED[form]]
    return None


def steps_in(words: Iterable[str]) -> bool:
    """Whether any of these words names a relation between people."""
    return any(steps is not None and steps[0] in RELATIONS for steps in map(_steps, words))


def words_of(text: str, capitalised: bool = False) -> list[str]:
    """Words in small letters, without the possessive's ending; only those written large, if asked."""
    found = (word.replace("’", "'") for word in _WORD.findall(text) if not capitalised or word[0].isupper())
    return [word.casefold().removesuffix("'s").rstrip("'") for word in found]


def telling_words(text: str) -> frozenset[str]:
    """The words of a sentence that say what it is about, its key's value above all; plurals are one with singulars."""
    return frozenset(word.removesuffix("s") for word in _telling(words_of(text)) - _ANY_KIND)


def _telling(words: Iterable[str]) -> frozenset[str]:
    return frozenset(words) - _SMALL - _GENERIC


def _plural(value: str) -> str:
    if value.endswith("man"):
        return value.removesuffix("man") + "men"
    if value.endswith("y") and value[-2:-1] not in "aeiou":
        return value.removesuffix("y") + "ies"
    return value + ("es" if value.endswith(("s", "x", "ch", "sh")) else "s")
