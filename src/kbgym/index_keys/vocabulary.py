"""Tokenization of sentences, the words of index sentences, and relations between people, from `vocabulary.toml`."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files

TABLES = tomllib.loads((files("kbgym.index_keys") / "vocabulary.toml").read_text(encoding="utf-8"))

# -- words -------------------------------------------------------------------------------------------------------------

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

_NO_MEANING = frozenset(f"{TABLES['words']['small']} {TABLES['words']['generic']}".split())
KIND_WORDS = {kind: frozenset(words.split()) for kind, words in TABLES["kinds"].items()}
PERSON_WORDS = frozenset(TABLES["words"]["person"].split())
RELATION_WORDS = frozenset(TABLES["words"]["relation"].split())
ASKED: dict[str, list[str]] = {attribute: words.split() for attribute, words in TABLES["asked"].items()}
ASKED_BY_WORD = {word: attribute for attribute, words in ASKED.items() for word in words}
ANY_KIND = frozenset[str]().union(*KIND_WORDS.values(), PERSON_WORDS)


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
    return frozenset(words) - _NO_MEANING


def many(value: str) -> str:
    """Return the plural of a value: tanners, ferrymen, bakeries."""
    if value.endswith("man"):
        return value.removesuffix("man") + "men"
    if value.endswith("y") and value[-2:-1] not in "aeiou":
        return value.removesuffix("y") + "ies"
    return value + ("es" if value.endswith(("s", "x", "ch", "sh")) else "s")


# -- relations ---------------------------------------------------------------------------------------------------------


def plural(relation: str) -> str:
    """Return "children" for "child", "sisters-in-law" for "sister-in-law", "first cousins once removed"."""
    head, *rest = re.split(r"(-in-law| once removed)", relation, maxsplit=1)
    head = head + "ren" if head.endswith("child") else "wives" if head == "wife" else head + "s"
    return head + "".join(rest)


def _flat(step: str) -> tuple[str, ...]:
    return tuple(further for one in STEPS[step] for further in _flat(one)) if step in STEPS else (step,)


_relations = TABLES["relations"]
GENDERED: dict[str, list[str]] = _relations["gendered"]
HALVES: dict[str, list[str]] = _relations["halves"]
STEPS: dict[str, list[str]] = _relations["steps"]
# Derived relations as paths over those that documents state themselves: ("parent", "sister") for an aunt.
PATHS = {relation: _flat(relation) for relation in STEPS}
SINGULAR: dict[str, str] = {
    form: relation for relation in (*_relations["basic"].split(), *PATHS) for form in (relation, plural(relation))
}
RELATION_OF_WORDS = {words_of(form): relation for form, relation in {**SINGULAR, **_relations["synonyms"]}.items()}


def is_relation(word: str) -> bool:
    """Return True if a word names a relation between people, in the singular or the plural."""
    return (word,) in RELATION_OF_WORDS
