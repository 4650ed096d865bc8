"""The kind of PhantomWiki worlds: the documents that belong under a key, and the description.

    key                       its members                      documents that serve a member
    job, hobby, birth = V     all people with V                the document that gives this person this value
    person = P                P's own documents                the document itself
    friend, son, child of P   all people in that relation to P the list that names the member as P's ("The sons of P are
                                                               M, N."), and the member's own that names P from the other
                                                               end ("The father of M is P.")
    child.daughter of P       all people at the path's end     the same for the last step
    job.birth = V             all people with the job V        the document that gives this person's date of birth

A document lists all people in one relation, so it may serve several members. Kinship that no sentence states is a path
over stated relations: an uncle is `parent.brother`. The words of the documents are never used. The indexes of an oracle
are not defined for this kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kbgym.errors import Damaged
from kbgym.index_keys.vocabulary import HALVES
from kbgym.worlds.kinds import WorldKind
from kbgym.worlds.phantomwiki.build import pool
from kbgym.worlds.phantomwiki.wiki import ATTRIBUTES, STATED
from kbgym.worlds.truth import Told, Truth
from kbgym.worlds.world import Document, Key, World

# Inverse relations: the lists of a member that may name the person of the key.
_OTHER_END = {"parent": "child", "child": "parent", "sibling": "sibling", "spouse": "spouse"}
_SIDE = {stated: either for either, pair in HALVES.items() for stated in pair}


class WikiTruth(Truth):
    """The truth of a PhantomWiki world."""

    asked = tuple(ATTRIBUTES)

    def __init__(self, world: World) -> None:
        try:
            self._people = {person["id"]: person for person in world.facts["people"]}
            name_of = {id: str(person["name"]) for id, person in self._people.items()}
        except (KeyError, TypeError) as error:
            raise Damaged(f"the facts of this world are not those of a PhantomWiki: {error!r}.") from error
        self._told = {(document.about[0], document.kind): document.id for document in world.documents if document.about}
        self._held: dict[Key, list[str]] = {}
        for id, person in self._people.items():
            for kind in ATTRIBUTES:
                if kind in person:
                    self._held.setdefault(Key(kind, person[kind]), []).append(id)
        known = sorted(self._held)
        super().__init__(
            world.documents, name_of, {kind: [key.value for key in known if key.kind == kind] for kind in ATTRIBUTES}
        )

    def _holders(self, key: Key) -> Iterable[str]:
        return self._held.get(key, ())

    def _document(self, person: str, kind: str) -> str | None:
        return self._told.get((person, kind))

    def _step(self, person: str, relation: str) -> Told:
        found: dict[str, list[str | None]] = {}
        for stated in HALVES.get(relation, (relation,)):
            for other in self._list(person, stated):
                found.setdefault(other, []).append(self._document(person, stated))
        back = HALVES.get(_OTHER_END.get(_SIDE.get(relation, relation), relation), (relation,))
        for other, documents in found.items():
            documents += [self._document(other, stated) for stated in back if person in self._list(other, stated)]
        return found

    def _list(self, person: str, stated: str) -> Sequence[str]:
        people: Sequence[str] = self._people[person].get(stated, ()) if stated in STATED else ()
        return people


class WikiKind(WorldKind):
    name = "phantomwiki"
    title = "PhantomWiki"
    has_pools = True
    lists_answers = True

    pool = staticmethod(pool)  # without tautologies
    truth = WikiTruth

    def form_of(self, document: Document) -> str:
        if document.kind not in STATED:
            return document.kind
        return "one" if len(document.about) == 2 else "several"
