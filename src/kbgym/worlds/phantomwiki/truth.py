"""Which documents belong under a key of a PhantomWiki, from its facts.

    key                       its members                      what serves a member
    job, hobby, birth = V     everybody with V                 the document that gives this person this value
    person = P                P's own documents                the document itself
    friend, son, child of P   everybody in that relation to P  the list that names the member as P's ("The sons of P are
                                                               M, N."), and the member's own that names P from the other
                                                               end ("The father of M is P.")
    child.daughter of P       everybody at the path's end      the same for the last step
    job.birth = V             everybody with the job V         the document that gives this person's date of birth

A document here lists everybody in one relation, so it may serve several members. Kinship that no sentence tells is a
path over what they do tell: an uncle is `parent.brother`. The words of the documents are never looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kbgym.errors import Damaged
from kbgym.worlds.phantomwiki.files import ATTRIBUTES
from kbgym.worlds.phantomwiki.kinship import EITHER, STATED
from kbgym.worlds.world import Key, World

# A relation seen from its other end: the lists of a member that may name the person it is a member of.
_OTHER_END = {"parent": "child", "child": "parent", "sibling": "sibling", "spouse": "spouse"}
_SIDE = {stated: either for either, pair in EITHER.items() for stated in pair}
Serving = Mapping[str, frozenset[str]]


class WikiTruth:
    """The truth of one PhantomWiki world."""

    def __init__(self, world: World) -> None:
        try:
            self._people = {person["id"]: person for person in world.facts["people"]}
            self._ids = {person["name"]: id for id, person in self._people.items()}
        except (KeyError, TypeError) as error:
            raise Damaged(f"the facts of this world are no PhantomWiki's: {error!r}.") from error
        self._about = {document.id: document.about for document in world.documents}
        self._told = {(document.about[0], document.kind): document.id for document in world.documents if document.about}
        self._own: dict[str, list[str]] = {}
        for document in world.documents:
            if document.about:
                self._own.setdefault(document.about[0], []).append(document.id)
        self._holders: dict[Key, list[str]] = {}
        for id, person in self._people.items():
            for kind in ATTRIBUTES:
                if kind in person:
                    self._holders.setdefault(Key(kind, person[kind]), []).append(id)
        self.values: dict[str, dict[str, None]] = {kind: {} for kind in ATTRIBUTES}
        for key in sorted(self._holders):
            self.values[key.kind][key.value] = None
        self._serving: dict[Key, tuple[frozenset[str], Serving]] = {}

    @property
    def names(self) -> Iterable[str]:
        return self._ids

    def members(self, key: Key) -> frozenset[str]:
        return self._resolved(key)[0]

    def serves(self, key: Key, document: str) -> frozenset[str]:
        return self._resolved(key)[1].get(document, frozenset())

    def belongs(self, key: Key, document: str) -> bool:
        if key.kind == "person":
            return self._ids.get(key.value) in self._about.get(document, ())
        return bool(self.serves(key, document))

    def recitable(self, key: Key) -> frozenset[str]:
        """For a person: whom the person's own documents name besides."""
        if key.kind != "person":
            return self.members(key)
        person = self._ids.get(key.value, "")
        others = {other for document in self._own.get(person, ()) for other in self._about[document]}
        return frozenset(self._name(other) for other in others if other != person)

    # -- resolving ----------------------------------------------------------------------------------------------------

    def _resolved(self, key: Key) -> tuple[frozenset[str], Serving]:
        if key not in self._serving:
            self._serving[key] = self._resolve(key)
        return self._serving[key]

    def _resolve(self, key: Key) -> tuple[frozenset[str], Serving]:
        kind, _, asked = key.kind.partition(".")
        if kind in ATTRIBUTES:
            holders = self._holders.get(Key(kind, key.value), ())
            return self._gathered({id: [self._told.get((id, asked or kind))] for id in holders})
        person = self._ids.get(key.value)
        if person is None:
            return frozenset(), {}
        if key.kind == "person":
            own = self._own.get(person, [])
            return frozenset(own), {document: frozenset((document,)) for document in own}
        return self._gathered(self._walk(person, key.kind.split(".")))

    def _gathered(self, found: Mapping[str, Sequence[str | None]]) -> tuple[frozenset[str], Serving]:
        """Members by name, and for every document that tells of one whom it serves."""
        serving: dict[str, frozenset[str]] = {}
        for id, documents in found.items():
            for document in documents:
                if document is not None:
                    serving[document] = serving.get(document, frozenset()) | {self._name(id)}
        return frozenset(map(self._name, found)), serving

    def _walk(self, start: str, path: Sequence[str]) -> dict[str, list[str | None]]:
        """Everybody at the end of a path, with the documents that tell the last step."""
        reached: dict[str, list[str | None]] = {start: []}
        for step in path:
            if step in ATTRIBUTES:  # the last step may ask for something of the people reached
                reached = {id: [self._told.get((id, step))] for id in reached}
                continue
            further: dict[str, list[str | None]] = {}
            for id in reached:
                for other, documents in self._step(id, step).items():
                    further.setdefault(other, []).extend(documents)
            reached = further
        if len(path) > 1:
            reached.pop(start, None)  # nobody is their own sibling, cousin or friend's friend
        return reached

    def _step(self, person: str, relation: str) -> dict[str, list[str | None]]:
        """Everybody in a relation to a person, with the documents that say so, from either end."""
        found: dict[str, list[str | None]] = {}
        for stated in EITHER.get(relation, (relation,)):
            for other in self._list(person, stated):
                found.setdefault(other, []).append(self._told.get((person, stated)))
        back = EITHER.get(_OTHER_END.get(_SIDE.get(relation, relation), relation), (relation,))
        for other, documents in found.items():
            documents += [self._told.get((other, stated)) for stated in back if person in self._list(other, stated)]
        return found

    def _list(self, person: str, stated: str) -> Sequence[str]:
        people: Sequence[str] = self._people[person].get(stated, ()) if stated in STATED else ()
        return people

    def _name(self, id: str) -> str:
        return str(self._people[id]["name"])
