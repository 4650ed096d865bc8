"""Rule-based extraction of entities and triples, and summaries made from them.

Names are runs of capitalised words, dates are dates, and the text after "'s job is", "The occupation of ... is" or
"lives in the city of" is a value of that relation. Capitalised runs are entities in any corpus; the sentence patterns
below only add kinds and relations. The module is independent of worlds and questions.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

import msgspec

NAME = "name"
DATE = "date"


class Entity(msgspec.Struct, frozen=True, order=True):
    """Something that documents mention; `kind` is "name", "date", or the relation it is a value of ("job", "city")."""

    kind: str
    name: str


class Triple(msgspec.Struct, frozen=True):
    """`relation` of `subject` is `object`: "Ann is a friend of Bo" is friend(Bo) = Ann.

    A relation that is a verb is written between them: "Ann married Bo".
    """

    subject: Entity
    relation: str
    object: Entity
    verb: bool = False


class Mention(msgspec.Struct, frozen=True):
    """The entities of one document in text order, and its triples."""

    entities: tuple[Entity, ...]
    triples: tuple[Triple, ...]


def mentions(texts: Sequence[str]) -> list[Mention]:
    """Extract mentions from a corpus; other spellings decide if a capitalised first word is a name."""
    spelling = _Spelling(texts)
    read = [_read(text, spelling) for text in texts]
    places = {entity.name for mention in read for entity in mention.entities if entity.kind in _PLACES}
    return [_placed(mention, places) for mention in read]


def by_entity(read: Iterable[Mention]) -> dict[Entity, list[int]]:
    """Map each entity to the numbers of the documents that mention it, in order of first appearance."""
    found: dict[Entity, list[int]] = {}
    for number, mention in enumerate(read):
        for entity in mention.entities:
            found.setdefault(entity, []).append(number)
    return found


# -- names ------------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+(?:['’](?!s\b)[^\W_]+|-[^\W_]+)*")
# The full stop of an initial does not end a sentence.
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b\w\.)\s+(?=[^\W\d_a-z])")
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(rf"\b(?:{_MONTH} \d{{1,2}}, \d{{4}}|\d{{1,2}} {_MONTH} \d{{4}}|\d{{4}}-\d{{2}}-\d{{2}})\b")
_PARTICLES = frozenset("of de da di du del der den la le van von al bin ibn y".split())
_WORDS = tomllib.loads((files("kbgym.baselines") / "entities.toml").read_text(encoding="utf-8"))
_FUNCTION = frozenset(_WORDS["function"].split())


class _Spelling:
    """Capitalisation statistics of a corpus."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.small: set[str] = set()
        self.inside: Counter[str] = Counter()
        for text in texts:
            for sentence in _SENTENCE.split(text):
                for start, _, run in _runs(_DATE.sub(" ", sentence), self.small):
                    if start > 0:
                        self.inside[run] += 1

    def trimmed(self, run: str) -> str:
        """Strip a sentence-initial run of a first word that is capitalised only by position."""
        first, _, rest = run.partition(" ")
        word = first.casefold()
        if word in _FUNCTION:
            return self.trimmed(rest) if rest else ""
        if run in self.inside or word not in self.small:
            return run
        return run if rest and rest not in self.inside else rest


def _runs(sentence: str, small: set[str] | None = None) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, text) of each run of capitalised words, including particles between two of them."""
    run: list[re.Match[str]] = []
    pending: list[re.Match[str]] = []
    for match in _WORD.finditer(sentence):
        word = match.group()
        joined = not run or sentence[(pending or run)[-1].end() : match.start()] in (" ", ". ")
        if run and not (joined and (word[0].isupper() or word in _PARTICLES)):
            yield _span(sentence, run)
            run, pending = [], []
        if word[0].isupper():
            run += [*pending, match]
            pending = []
        elif run and word in _PARTICLES:
            pending.append(match)
        if small is not None and word[0].islower():
            small.add(word)
    if run:
        yield _span(sentence, run)


def _span(sentence: str, run: list[re.Match[str]]) -> tuple[int, int, str]:
    start, end = run[0].start(), run[-1].end()
    return start, end, sentence[start:end]


# -- sentence shapes --------------------------------------------------------------------------------------------------

# Names and dates are replaced by marks before a sentence is matched with these patterns.
_OPEN, _CLOSE = "\ue000", "\ue001"
_MARK = f"{_OPEN}\\d+{_CLOSE}"
_MARKS = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_LIST = re.compile(f"{_MARK}(?:(?:, | and |, and ){_MARK})*")
_OWNS = re.compile(f"(?P<subject>{_MARK})['’]s (?P<relation>[a-z][a-z -]*?) (?:is|are|was|were) (?P<object>.+)")
_OF = re.compile(f"The (?P<relation>[a-z][a-z -]*?) of (?P<subject>{_MARK}) (?:is|are|was|were) (?P<object>.+)")
_IS_OF = re.compile(f"(?P<object>{_MARK}) (?:is|was) (?:an?|the) (?P<relation>[a-z][a-z -]*?) of (?P<subject>{_MARK})")
_VERB = re.compile(f"(?P<subject>{_MARK}) (?P<relation>[a-z][a-z -]*?) (?P<object>{_MARK})")
_PLACES = frozenset({"city", "town", "village", "country"})
_PLACE_PHRASE = re.compile(r"(?:.* )?(city|town|village|country) of|(?:lives|lived|resides|resided) in")
_VALUES = frozenset({"job", "hobby", "gender", *_PLACES})


def _read(text: str, spelling: _Spelling) -> Mention:
    entities: dict[Entity, None] = {}
    triples: list[Triple] = []
    for sentence in _SENTENCE.split(text.strip()):
        named, marked = _marked(sentence, spelling)
        stated = list(_stated(marked.strip().rstrip(".!?"), named))
        # A value that looks like a name ("Ambleford", "Tai chi") is only a value.
        values = {t.object.name: t.object for t in stated if t.object.kind not in (NAME, DATE)}
        found = {entity.name: entity for entity in named if not any(entity.name in value for value in values)} | values
        for name in sorted(found, key=sentence.find):
            entities[found[name]] = None
        triples += stated
    return Mention(tuple(entities), tuple(triples))


def _marked(sentence: str, spelling: _Spelling) -> tuple[list[Entity], str]:
    """Return the names and dates of a sentence, and the sentence with each replaced by a numbered mark."""
    sentence = sentence.replace(_OPEN, " ").replace(_CLOSE, " ")
    spans = [(m.start(), m.end(), Entity(DATE, m.group())) for m in _DATE.finditer(sentence)]
    covered = _DATE.sub(lambda m: " " * len(m.group()), sentence)
    for start, end, run in _runs(covered):
        name = spelling.trimmed(run) if start == 0 else run
        if name and name.casefold() not in _FUNCTION:
            spans.append((end - len(name), end, Entity(NAME, name)))
    spans.sort(key=lambda span: span[0])
    marked, at = "", 0
    for number, (start, end, _) in enumerate(spans):
        marked += f"{sentence[at:start]}{_OPEN}{number}{_CLOSE}"
        at = end
    return [entity for _, _, entity in spans], marked + sentence[at:]


def _stated(marked: str, named: Sequence[Entity]) -> Iterator[Triple]:
    for shape in (_OWNS, _OF, _IS_OF, _VERB):
        if match := shape.fullmatch(marked):
            subject = _unmarked(match["subject"], named)[0]
            relation = match["relation"]
            place = _PLACE_PHRASE.fullmatch(relation)
            relation = (place[1] or "city") if place else _WORDS["same"].get(relation, relation.removeprefix("is "))
            for found in _objects(match["object"], relation, named):
                yield Triple(subject, relation, found, shape is _VERB and not place)
            return


def _objects(text: str, relation: str, named: Sequence[Entity]) -> list[Entity]:
    plain = _MARKS.sub(lambda mark: named[int(mark[1])].name, text)
    if relation not in _VALUES and _LIST.fullmatch(text):
        return _unmarked(text, named)
    return [Entity(relation, plain)]


def _unmarked(text: str, named: Sequence[Entity]) -> list[Entity]:
    return [named[int(number)] for number in _MARKS.findall(text)]


def _placed(mention: Mention, places: set[str]) -> Mention:
    """Turn names that are a city elsewhere in the corpus into that city."""
    if not any(entity.kind == NAME and entity.name in places for entity in mention.entities):
        return mention

    def placed(entity: Entity) -> Entity:
        return Entity("city", entity.name) if entity.kind == NAME and entity.name in places else entity

    triples = tuple(Triple(placed(t.subject), t.relation, placed(t.object), t.verb) for t in mention.triples)
    return Mention(tuple(dict.fromkeys(placed(entity) for entity in mention.entities)), triples)


# -- summaries --------------------------------------------------------------------------------------------------------

MOST_NAMES = 12


def central(mentioned: Iterable[Sequence[Entity]]) -> list[Entity]:
    """Sort entities by document frequency, ties by first appearance, dates last."""
    counts: Counter[Entity] = Counter()
    for entities in mentioned:
        counts.update(entities)
    order = {entity: place for place, entity in enumerate(counts)}
    return sorted(counts, key=lambda entity: (entity.kind == DATE, -counts[entity], order[entity]))


def summary(entities: Sequence[Entity], documents: int) -> str:
    """Return a summary such as "Summary of 12 documents about tailor (job), Ann Bly, Bo Cade and 3 more"."""
    shown = ((one.name, "" if one.kind in (NAME, DATE) else f" ({one.kind})") for one in entities[:MOST_NAMES])
    about = ", ".join(map("".join, shown))
    left = len(entities) - MOST_NAMES
    more = f" and {left} more" if left > 0 else ""
    return f"Summary of {documents} documents" + (f" about {about}{more}" if about else "")
