"""Tokenization of sentences, and the vocabulary of index sentences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

# A word (C++ and C# are not C), or a sign that changes the meaning. Punctuation at the end of a word is ignored;
# dots, colons and the like between two words count as signs (`x..y` is not `x...y`), as do characters used only in
# code, numbers and amounts of money.
_WORD = r"[^\W_]+(?:['’-][^\W_]+)*[+#]*"
_SIGNS = (
    r"[<>=≤≥≠±−%$€£&|*^~@#+\\/\[\]{}]+",
    r"(?<!\.)\.{2,}(?=[^\s\"'”’)])",
    r"(?<=\w)(?:\.|_+|:+)(?=\w)",
    r"::+",
    r"(?<![!?])[!?]+(?=[\w=?.(])",
    r"(?:(?<![\w-])|(?<=\w-))-+(?=\w)",
)
_TOKEN = re.compile("|".join((_WORD, *_SIGNS)))


def tokens(text: str) -> Iterator[str]:
    """Yield the words and signs of a text as they are written, in Unicode normal form C."""
    return (match.group() for match in _TOKEN.finditer(unicodedata.normalize("NFC", text)))


@lru_cache(maxsize=200_000)
def words_of(text: str) -> tuple[str, ...]:
    """Return words in lower case without the possessive ending, and signs."""
    # Lower case before splitting, since some letters become two.
    small = unicodedata.normalize("NFC", text).casefold().replace("’", "'")
    return tuple(token.removesuffix("'s") for token in tokens(small))


def telling(words: Iterable[str]) -> frozenset[str]:
    """Return the words that carry meaning, without stop words and the generic words of indexes."""
    return frozenset(words) - _SMALL - _GENERIC


_SMALL = frozenset(
    "a an the of is are as in on at to for and or who whom whose which that these those by with from their its".split()
)
_GENERIC = frozenset(
    "index indexes list all every each everyone everybody anyone everything documents document facts fact known about"
    " information record records overview directory hub entry see links page reference set group collection".split()
)
# Words allowed beside the value in a sentence about each attribute.
_PEOPLE = "people person persons "
KIND_WORDS = {
    kind: frozenset((_PEOPLE + words).split())
    for kind, words in {
        "city": "city town residents resident live lives living inhabitants inhabitant citizens based located home"
        " population dwellers",
        "job": "job jobs occupation occupations profession professions professionals work works working employed role"
        " career holders holder practitioners who're",
        "hobby": "hobby hobbies pastime pastimes enjoy enjoys enjoying enthusiasts enthusiast lovers fans hobbyists"
        " interest interested practice practise practitioners players do does doing participants",
        "born": "born date birth birthday birthdays dates",
    }.items()
}
# Words allowed beside a person's name, alone and with a relation.
PERSON_WORDS = frozenset("person profile biography bio details summary stated regarding concerning own".split())
RELATION_WORDS = frozenset("people person persons relation relations relatives family s".split())
# Attributes that may be asked of each of several people.
ASKED = {
    "job": ("jobs", "job", "occupations", "occupation"),
    "hobby": ("hobbies", "hobby", "pastimes"),
    "city": ("cities", "city", "homes"),
    "born": ("birthdays", "birthdates", "birthday", "birthdate", "births", "birth", "dates", "date"),
}
ASKED_BY_WORD = {word: attribute for attribute, words in ASKED.items() for word in words}
ANY_KIND = frozenset[str]().union(*KIND_WORDS.values(), PERSON_WORDS)


def many(value: str) -> str:
    """Return the plural of a value: tanners, ferrymen, bakeries."""
    if value.endswith("man"):
        return value.removesuffix("man") + "men"
    if value.endswith("y") and value[-2:-1] not in "aeiou":
        return value.removesuffix("y") + "ies"
    return value + ("es" if value.endswith(("s", "x", "ch", "sh")) else "s")
