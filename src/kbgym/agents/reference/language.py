"""How the reference agents understand text: sentences as facts, and which sentences are indexes.

It knows English shapes, not the world: everything comes out of the sentence in front of it. A sentence it cannot parse
is simply no fact. The same shapes serve the people universe and PhantomWiki.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

import msgspec


class Fact(msgspec.Struct, frozen=True):
    """`relation` of `subject` is `value`: friend(Ann) = Bob.

    `about` is whom the sentence itself speaks of first; `whole` when it states all values at once ("The friends of Ann
    are Bob, Cy.").
    """

    relation: str
    subject: str
    value: str
    about: str
    whole: bool = False


class IndexKey(msgspec.Struct, frozen=True):
    """What an index is about: a person (`person`), everybody with an attribute (`job`), a relation (`friend`).

    With `then`, one step further: what is stated of each of those people ("Cities of people whose job is tanner").
    With `part`, only what lies between two values ("..., from Ashford to Dunmere").
    """

    kind: str
    value: str
    then: str = ""
    part: tuple[str, str] | None = None

    @property
    def base(self) -> IndexKey:
        return IndexKey(self.kind, self.value)

    @property
    def whole(self) -> IndexKey:
        return IndexKey(self.kind, self.value, self.then)


ATTRIBUTES = ("job", "hobby", "city", "born", "gender")

# Relations documents state, each with the words that name it.
STATED = {
    "spouse": "spouse spouses husband husbands wife wives",
    "parent": "parent parents",
    "father": "father fathers",
    "mother": "mother mothers",
    "child": "child children",
    "son": "son sons",
    "daughter": "daughter daughters",
    "sibling": "sibling siblings",
    "brother": "brother brothers",
    "sister": "sister sisters",
    "friend": "friend friends",
    "job": "job jobs occupation occupations",
    "hobby": "hobby hobbies",
    "city": "city",
    "born": "birth birthdate",
    "gender": "gender",
}
_RELATION_OF_WORD = {word: relation for relation, words in STATED.items() for word in words.split()}
_RELATION_OF_WORD["date of birth"] = "born"

_SHAPES = [
    (re.compile(r"(?P<about>.+?)'s (?P<relation>job|hobby) is (?P<value>.+)"), None),
    (re.compile(r"(?P<about>.+?) lives in the city of (?P<value>.+)"), "city"),
    (re.compile(r"(?P<about>.+?) was born on (?P<value>.+)"), "born"),
    (re.compile(r"(?P<about>.+?) is married to (?P<value>.+)"), "spouse"),
    (re.compile(r"(?P<about>.+?) is a child of (?P<value>.+)"), "parent"),
    (re.compile(r"(?P<about>.+?) is a friend of (?P<value>.+)"), "friend"),
]
_PARENT = re.compile(r"(?P<about>.+?) is the (?P<relation>mother|father) of (?P<child>.+)")
_STATEMENT = re.compile(r"The (?P<relation>date of birth|[a-z]+) of (?P<about>.+?) (?:is|are) (?P<values>.+)")


@lru_cache(maxsize=200_000)
def facts(text: str) -> tuple[Fact, ...]:
    """What a sentence states, empty when it is no fact sentence."""
    sentence = text.strip().removesuffix(".")
    for shape, relation in _SHAPES:
        if match := shape.fullmatch(sentence):
            about, value = match["about"], match["value"]
            name = relation or match["relation"]
            return (Fact(name, about, _date(value) if name == "born" else value, about),)
    if match := _PARENT.fullmatch(sentence):
        return (Fact(match["relation"], match["child"], match["about"], match["about"]),)
    if match := _STATEMENT.fullmatch(sentence):
        word = match["relation"]
        if (relation := _RELATION_OF_WORD.get(word)) is None:
            return ()
        values = match["values"].split(", ")
        if word in ("husband", "wife"):
            relation = word
        return tuple(Fact(relation, match["about"], value, match["about"], True) for value in values)
    return ()


def _date(text: str) -> str:
    """A date that sorts, from "September 16, 1920" or from one that already does."""
    try:
        return datetime.strptime(text, "%B %d, %Y").date().isoformat()
    except ValueError:
        return text


# -- indexes ----------------------------------------------------------------------------------------------------------

_WORDS = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SMALL = set("a an the of is are in on to for and who whom whose which that by with".split())
_GENERIC = set(
    "index indexes list all every each everyone everything documents document facts fact known about".split()
)
_KIND_WORDS = {
    "job": set("people person persons job jobs occupation occupations profession work works holders".split()),
    "hobby": set("people person persons hobby hobbies pastime enjoy enjoys".split()),
    "city": set("people person persons city town residents resident live lives living".split()),
    "born": set("people person persons born date birth".split()),
    "person": set(),
}
# A bare date, like a bare name: indexes that say "date of birth" as well crowd the documents out of the first sixty
# results for every date that has none (60 of them: 5% of the other dates are still found, 53% with bare ones).
_INDEX_TEXT = {
    "job": "People whose job is {}",
    "hobby": "People whose hobby is {}",
    "city": "People who live in the city of {}",
    "born": "{}",
    "person": "{}",
}


_THEN_WORDS = {
    "job": ("jobs", "job", "occupations", "occupation"),
    "hobby": ("hobbies", "hobby", "pastimes"),
    "city": ("cities", "city", "homes"),
    "born": ("birthdays", "birthdates", "births", "birth", "dates"),
}


def index_text(key: IndexKey) -> str:
    """The sentence an index for this key is given: it names the key and no member."""
    if key.part is not None:
        return f"{index_text(key.whole)}, from {key.part[0]} to {key.part[1]}"
    if key.then:
        base = index_text(key.base)
        return f"{_THEN_WORDS[key.then][0].capitalize()} of {base[0].lower()}{base[1:]}"
    if key.kind in _INDEX_TEXT:
        return _INDEX_TEXT[key.kind].format(key.value)
    return f"{plural(key.kind).capitalize()} of {key.value}"


_BARE = ("born", "person")
_THEN_OF = {words[0]: attribute for attribute, words in _THEN_WORDS.items()}
_THEN = re.compile(rf"({'|'.join(word.capitalize() for word in _THEN_OF)}) of (.+)")
_PART = re.compile(r"(.+), from (.+?) to (.+)")
_RELATION_INDEX = re.compile(r"(Friends|Children|Parents|Siblings|Spouses) of (.+)")
_DATE = re.compile(r"\d+-\d+-\d+")
_INDEX_KEY = {kind: re.compile(re.escape(text).replace(r"\{\}", "(.+)")) for kind, text in _INDEX_TEXT.items()}


def index_key(text: str) -> IndexKey | None:
    """The key of an index worded as `index_text` words it, None for anything else."""
    if facts(text):
        return None
    if _DATE.fullmatch(text):
        return IndexKey("born", text)
    if (match := _PART.fullmatch(text)) and (whole := index_key(match[1])) is not None and whole.then:
        return msgspec.structs.replace(whole, part=(match[2], match[3]))
    if (match := _THEN.fullmatch(text)) and (base := _base_key(match[2])) is not None:
        return msgspec.structs.replace(base, then=_THEN_OF[match[1].lower()])
    return _base_key(text) or IndexKey("person", text)


def _base_key(text: str) -> IndexKey | None:
    text = text[:1].upper() + text[1:]
    if match := _RELATION_INDEX.fullmatch(text):
        return IndexKey(_RELATION_OF_WORD[match[1].lower()], match[2])
    for kind, pattern in _INDEX_KEY.items():
        if kind not in _BARE and (match := pattern.fullmatch(text)):
            return IndexKey(kind, match[1])
    return None


@lru_cache(maxsize=200_000)
def is_index(text: str, key: IndexKey) -> bool:
    """Whether a sentence names this key and says nothing else, whoever wrote it."""
    if key.part is not None:
        return index_key(text) == key
    if facts(text):
        return False
    words = [word.removesuffix("'s") for word in _split(text)]
    value = _split(key.value)
    for start in range(len(words) - len(value) + 1):
        if words[start : start + len(value)] == value:
            rest = {*words[:start], *words[start + len(value) :]} - _SMALL - _GENERIC
            if key.then:
                asked = rest & {*_THEN_WORDS[key.then]}
                if not asked:
                    return False
                rest -= asked
            if key.kind in _KIND_WORDS:
                return rest <= _KIND_WORDS[key.kind]
            named = {*_split(key.kind), *_split(plural(key.kind))}
            return bool(rest) and rest <= named | {"people"}
    return False


def _split(text: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(text)]


_PLURALS = {"child": "children", "wife": "wives"}


def plural(relation: str) -> str:
    """ "children" of "child", "sisters-in-law" of "sister-in-law", "first cousins once removed"."""
    head, *rest = re.split(r"(-in-law| once removed)", relation, maxsplit=1)
    for word, many in _PLURALS.items():
        if head.endswith(word):
            return head.removesuffix(word) + many + "".join(rest)
    return head + "s" + "".join(rest)
