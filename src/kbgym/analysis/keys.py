"""The keys of one world's sentences: the shared recogniser, given the world's names and values, in the world's words.

What a sentence names is decided in `kbgym.naming`, as it is for the agents and their agenda; here its keys become the
truth's (a grandchild is a child's child), and a sentence that recites is taken apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kbgym.agents.reference.members import shared_key
from kbgym.naming import IndexKey, KeyVocabulary, Span, words_of
from kbgym.naming.recognise import is_relation
from kbgym.naming.relations import PATHS
from kbgym.naming.words import ANY_KIND, telling
from kbgym.worlds.truth import Truth
from kbgym.worlds.world import Key

# What a sentence that recites or counts the members says besides naming its key.
_TELLING_VERBS = frozenset(
    "include includes including namely is are was has have had number count total common".split()
)
NUMBERS = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
# What the agents call otherwise than worlds do.
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
        """The one key a sentence names, or else most of the documents it links to state; or None."""
        if text not in self._keys:
            self._keys[text] = _as_the_world_has_it(self._vocabulary.key(text))
        if self._keys[text] is None and (shared := shared_key(linked)) is not None:
            return _as_the_world_has_it(self._vocabulary.key(text, shared))
        return self._keys[text]

    def named(self, text: str) -> list[Span]:
        """Every name and value in a sentence, the longest at each place; a word with two meanings comes twice."""
        return [span._replace(kind=_KINDS.get(span.kind, span.kind)) for span in self._vocabulary.spans(text)]

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


def _as_the_world_has_it(key: IndexKey | None) -> Key | None:
    """A relation is a path of those the world tells; what is asked of everybody is the path's last step."""
    if key is None:
        return None
    steps = [step for relation in key.kind.split(".") for step in PATHS.get(relation, (relation,))]
    return Key(".".join(_KINDS.get(step, step) for step in (*steps, key.then) if step), key.value)


def steps_in(words: Iterable[str]) -> bool:
    """Whether any of these words names a relation between people."""
    return any(map(is_relation, words))


def telling_words(text: str) -> frozenset[str]:
    """The words of a sentence that say what it is about, its key's value above all; plurals are one with singulars."""
    return frozenset(word.removesuffix("s") for word in telling(words_of(text)) - ANY_KIND)
