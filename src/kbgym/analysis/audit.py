"""Audit of a store's authored documents: their keys and kinds, and whether their links are correct and complete.

Keys: `kbgym.index_keys` decides what a sentence names, as it does for the agents and their agenda. Here its keys are
expressed in the world's terms (a grandchild is a child's child).

Kinds: an index names its key. A materialised answer states what is under the key: it recites members ("Friends of P: A,
B and C"), counts them, or states a fact ("The baker living in X is A"). With a world's truth this is checked against
the true members; without one, by the shape of the sentence and the text of the linked documents.

An authored document is `materialised` (it states an answer), a `stub` (no link), `genuine` (links, and a key that
resolves) or `other` (links, but no single key). Genuine indexes are scored against the true members of their key, see
`worlds/truth.py`. A link is correct, and leads to members, if it points at one of:

- an original document that belongs under the key;
- the hub of a person who is a member, if the hub has links of its own: it represents that member completely;
- the hub of another person that itself links to an original serving the key (a child's hub under the grandchildren);
- another index of the same key, of the same person where the key is a person, or one at least half of whose links are
  correct under the key: its correct targets count.

Precision is correct links over links, recall is members reached by correct links over members. Both are pooled over the
indexes of a row, as in the paper. A document is judged by the original facts it
carries: an edit that changes its meaning is not detected. Without a truth nothing is scored and no key is needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from kbgym.agents.reference.language import facts, shared_key
from kbgym.index_keys import IndexKey, KeyVocabulary, Span
from kbgym.index_keys.vocabulary import ANY_KIND, PATHS, is_relation, telling, tokens, words_of
from kbgym.sanitize import number_in
from kbgym.store import Record, Store
from kbgym.worlds.truth import ATTRIBUTES, GROUPS, Truth, group_of
from kbgym.worlds.world import Key

# What a sentence that recites or counts the members says besides naming its key.
_TELLING_VERBS = frozenset(
    "include includes including namely is are was has have had number count total common".split()
)
NUMBERS = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
# Kinds that agents and worlds name differently.
_KINDS = {"born": "birth"}
_NAMED_AS = {kind: name for name, kind in _KINDS.items()}


class Resolver:
    """Keys of one world's sentences."""

    def __init__(self, truth: Truth) -> None:
        self._vocabulary = KeyVocabulary()
        for name in truth.names:
            self._vocabulary.know("person", name)
        for kind, values in truth.values.items():
            for value in values:
                self._vocabulary.know(_NAMED_AS.get(kind, kind), value)
        self._keys: dict[str, Key | None] = {}

    def key(self, text: str, linked: Sequence[str] = ()) -> Key | None:
        """Return the key that a sentence names, else the key that most of its linked documents state, else None."""
        if text not in self._keys:
            self._keys[text] = _as_the_world_has_it(self._vocabulary.key(text))
        if self._keys[text] is None and (shared := shared_key(linked)) is not None:
            return _as_the_world_has_it(self._vocabulary.key(text, shared))
        return self._keys[text]

    def named(self, text: str) -> list[Span]:
        """Return the names and values in a sentence, longest match first; a word with two meanings occurs twice."""
        return [span._replace(kind=_KINDS.get(span.kind, span.kind)) for span in self._vocabulary.spans(text)]

    def keys_if_alone(self, text: str) -> list[Key]:
        """Return the keys that a sentence names without its numbers and without all, or all but one, of its people."""
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


def _as_the_world_has_it(key: IndexKey | None) -> Key | None:
    """Return a key in the world's terms: its relation as a path of stated relations, the attribute as the last step."""
    if key is None:
        return None
    steps = [step for relation in key.kind.split(".") for step in PATHS.get(relation, (relation,))]
    return Key(".".join(_KINDS.get(step, step) for step in (*steps, key.then) if step), key.value)


def telling_words(text: str) -> frozenset[str]:
    """Return the words that say what a sentence is about, above all its key's value; plurals match singulars."""
    return frozenset(word.removesuffix("s") for word in telling(words_of(text)) - ANY_KIND)


_TELLS = re.compile(r":|=| is | are ")
_NOBODY = frozenset("people everyone everybody anyone person persons those someone all each every who".split())


def states_answer(text: str, resolver: Resolver, truth: Truth) -> bool:
    """Return True if a sentence states members of its key, or one true fact.

    It does if it names two true members of its key, the only member, or one member after a colon or "is"; if it gives
    the number of members; if it gives a person an attribute that the person has; or if it is a sentence of the world.
    """
    people = {one.value for one in resolver.named(text) if one.kind == "person"}
    if not people:
        return False
    if any(fact.about in people for fact in facts(text)):
        return True
    words = words_of(text)
    numbers = {NUMBERS.get(word, number_in(word)) for word in words}
    for key in resolver.keys_if_alone(text):
        members = truth.recitable(key)
        told = len(members & (people - {key.value}))
        if told >= 2 or (told == 1 and key.kind != "person" and (len(members) == 1 or _TELLS.search(text))):
            return True
        if key.kind not in (*ATTRIBUTES, "person") and len(members) in numbers:
            return True
    if any(map(is_relation, words)):
        return False  # "Friends of P whose job is J" narrows a relation; it says nothing of P's own job
    values = [Key(one.kind, one.value) for one in resolver.named(text) if one.kind != "person"]
    return any(truth.members(key) & people for key in values)


def seems_answer(text: str, targets: Sequence[str]) -> bool:
    """Apply the check without a truth: match known sentence shapes, or names that distinguish the targets."""
    for fact in facts(text):
        about = words_of(fact.about)
        if about and not _NOBODY.intersection(about):
            return True
    mine = set(words_of(text))
    written = [" ".join(word for word in tokens(target) if word[0].isupper()) for target in targets]
    names = [{word for word in words_of(large) if word in mine} for large in written]
    shared = Counter(word for words in names for word in words)
    apart = [words for words in names if any(shared[word] == 1 for word in words)]
    return len(apart) >= 2


Shape = Literal["genuine", "stub", "materialised", "other"]
SHAPES: tuple[Shape, ...] = ("genuine", "stub", "materialised", "other")
NOBODY: frozenset[str] = frozenset()


class Index(msgspec.Struct, frozen=True):
    """An authored document. `wrong` are targets that do not belong, `missing` members without a correct link."""

    id: str
    text: str
    shape: Shape
    degree: int
    key: Key | None = None
    group: str = ""
    members: int = 0
    wrong: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def scored(self) -> bool:
        return self.shape == "genuine" and self.key is not None

    @property
    def precision(self) -> float:
        return 1 - len(self.wrong) / self.degree if self.degree else 0.0

    @property
    def recall(self) -> float:
        """Return the recall; an index whose key has no member counts as 0."""
        return 1 - len(self.missing) / self.members if self.members else 0.0


class Quality(msgspec.Struct, frozen=True):
    """One row of the table. `degree` is the mean number of links."""

    group: str
    n: int
    degree: float
    precision: float
    recall: float


class Audit(msgspec.Struct, frozen=True):
    """Every authored document, judged. `resolved` is True if a truth was available to score against."""

    indexes: tuple[Index, ...]
    resolved: bool

    def count(self, shape: Shape) -> int:
        return sum(index.shape == shape for index in self.indexes)

    @property
    def table(self) -> tuple[Quality, ...]:
        """Return one row per kind of key that has an index, and a row over all; empty without a truth."""
        scored = [index for index in self.indexes if index.scored]
        rows = [quality(group, [index for index in scored if index.group == group]) for group in GROUPS]
        return tuple(row for row in (*rows, quality("all", scored)) if row is not None)

    @property
    def total(self) -> Quality | None:
        return quality("all", [index for index in self.indexes if index.scored])


def quality(group: str, indexes: Sequence[Index]) -> Quality | None:
    """Pool indexes into a row; return None if there are none."""
    if not indexes:
        return None
    links = sum(index.degree for index in indexes)
    members = sum(index.members for index in indexes)
    precision = 1 - sum(len(index.wrong) for index in indexes) / links
    recall = 1 - sum(len(index.missing) for index in indexes) / members if members else 0.0
    return Quality(group, len(indexes), links / len(indexes), precision, recall)


class Auditor:
    """Judges the authored documents of one store against one truth."""

    def __init__(self, store: Store, truth: Truth | None) -> None:
        self.store = store
        self.truth = truth
        self._resolver = Resolver(truth) if truth else None

    def audit(self) -> Audit:
        return Audit(tuple(map(self.index, self.store.authored())), self.truth is not None)

    def key(self, record: Record) -> Key | None:
        """Return the key of an authored document, by its words or else by most of its links; None for an original."""
        if self._resolver is None or record.flag != "authored":
            return None
        return self._resolver.key(record.text, [self.store[target].text for target in record.links])

    def shape(self, record: Record) -> Shape:
        if self.truth and self._resolver:
            answers = states_answer(record.text, self._resolver, self.truth)
        else:
            answers = seems_answer(record.text, [self.store[target].text for target in record.links])
        if answers:
            return "materialised"
        if not record.links:
            return "stub"
        return "genuine" if self.truth is None or self.key(record) is not None else "other"

    def index(self, record: Record) -> Index:
        """Judge one authored document."""
        shape, key = self.shape(record), self.key(record)
        base = Index(record.id, record.text, shape, len(record.links), key, group_of(key) if key else "")
        if self.truth is None or key is None or shape != "genuine":
            return base
        found: set[str] = set()
        wrong: list[str] = []
        for target in record.links:
            members = self.reach(key, target)
            if members is not None:
                found |= members
            elif not self._leads_on(record, target):
                wrong.append(target)
        members = self.truth.members(key)
        missing = tuple(sorted(members - found))
        return msgspec.structs.replace(base, members=len(members), wrong=tuple(wrong), missing=missing)

    def correct(self, index: Record, target: str) -> bool:
        """Return True if a link belongs: the check behind the confirmed reading of `coverage`."""
        key = self.key(index)
        return key is not None and (self.reach(key, target) is not None or self._leads_on(index, target))

    def _leads_on(self, index: Record, target: str) -> bool:
        """Return True if a link leads to the index of something that a document of this index names."""
        further = self.store[target]
        key = self.key(further) if further.flag == "authored" and further.links else None
        named = (self.store[other] for other in index.links if other != target)
        return key is not None and any(key.value in one.text for one in named if one.flag != "authored")

    # -- one link -----------------------------------------------------------------------------------------------------

    def reach(self, key: Key, target: str) -> frozenset[str] | None:
        """Return the members that a link to this document leads to, or None if the link is wrong."""
        record = self.store[target]
        if self._belongs(key, record):
            return self._served(key, (record,))
        if record.flag != "authored" or not record.links:
            return None
        below = self.key(record)
        linked = [self.store[further] for further in record.links]
        served = self._served(key, linked)
        if below is not None and below.kind == "person" and below != key:
            member = self._stands_for(key, record)
            return served | {member} if member else served or None
        same = below is not None and (below == key or (key.kind == "person" and below.value == key.value))
        right = [one for one in linked if self._belongs(key, one) or self._stands_for(key, one)]
        if not same and 2 * len(right) < len(linked):
            return None
        return served | frozenset(name for one in right if (name := self._stands_for(key, one)))

    def _belongs(self, key: Key, record: Record) -> bool:
        return self.truth is not None and any(self.truth.belongs(key, origin) for origin in record.origins)

    def _served(self, key: Key, records: Iterable[Record]) -> frozenset[str]:
        if self.truth is None:
            return NOBODY
        return NOBODY.union(*(self.truth.serves(key, origin) for one in records for origin in one.origins))

    def _stands_for(self, key: Key, record: Record) -> str:
        """Return the member that a hub with links is about, or None."""
        hub = self.key(record) if record.links else None
        if hub is None or hub.kind != "person" or key.kind == "person":
            return ""
        return hub.value if self.truth is not None and hub.value in self.truth.members(key) else ""
