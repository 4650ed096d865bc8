"""The kind of v3 worlds: documents that presently belong under a key, the oracle's indexes, and the description."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kbgym.chronicle.timeline import ATTRIBUTES, PARENTS, DatedReport
from kbgym.index_keys.vocabulary import GENDERED
from kbgym.worlds.kinds import WorldKind
from kbgym.worlds.people.kind import INDEX_TEXTS
from kbgym.worlds.people3 import KIND, facts_of, pool
from kbgym.worlds.people3.documents import rules
from kbgym.worlds.truth import Told, Truth
from kbgym.worlds.world import Description, Document, Key, Question, World

_GENDERS = {"mother": "female", "father": "male"}


class ReportedTruth(Truth):
    """The truth of a v3 world after its rounds of updates; only reports that count belong under a key."""

    asked = (*ATTRIBUTES, "birth")

    def __init__(self, world: World) -> None:
        facts = facts_of(world)
        self.timeline = facts.timeline(world.facts.get("round", 0))
        people = {name for document in world.documents for name in document.about}
        self.relatives: dict[str, dict[str, list[tuple[str, DatedReport]]]] = {}
        for name in sorted(people):
            for relation in PARENTS:
                if (report := self.timeline.current(relation, name)) is not None:
                    self.relatives.setdefault(name, {}).setdefault("parent", []).append((report.value, report))
                    self.relatives.setdefault(report.value, {}).setdefault("child", []).append((name, report))
        values: dict[str, dict[str, None]] = {kind: {} for kind in ATTRIBUTES}
        for report in facts.reports:
            if report.relation in values and self.timeline.holders(report.relation, report.value):
                values[report.relation][report.value] = None
        super().__init__(world.documents, {name: name for name in sorted(people)}, values)

    def _holders(self, key: Key) -> Iterable[str]:
        return self.timeline.holders(key.kind, key.value)

    def _document(self, person: str, kind: str) -> str | None:
        last = self.timeline.current("born" if kind == "birth" else kind, person)
        return last.document if last else None

    def _step(self, person: str, relation: str) -> Told:
        relation, gender = GENDERED.get(relation, [relation, ""])
        if relation == "friend":
            return {other: [report.document] for other, report in self.timeline.friends(person).items()}
        if relation == "spouse":
            spouse = self.timeline.spouse(person)
            return {spouse[0]: [spouse[1].document]} if spouse else {}
        told = self.relatives.get(person, {}).get(relation, [])
        return {
            other: [report.document]
            for other, report in told
            if relation != "parent" or not gender or _GENDERS[report.relation] == gender
        }


def indexes(world: World) -> Iterator[tuple[str, str, list[str]]]:
    """Yield every index of a perfect curator: for each value, person and person's friends, with the present facts."""
    truth = ReportedTruth(world)
    for kind, values in truth.values.items():
        for value in sorted(values):
            holders = truth.timeline.holders(kind, value)
            yield kind, INDEX_TEXTS[kind].format(value), [report.document for report in holders.values()]
    about: dict[str, list[str]] = {}
    for document in world.documents:
        for name in document.about:
            about.setdefault(name, []).append(document.id)
    for name, documents in sorted(about.items()):
        yield "person", name, documents
        friends = [report.document for report in truth.timeline.friends(name).values()]
        yield "friends", f"Friends of {name}", friends


class People3Kind(WorldKind):
    """The kind of benchmark v3."""

    name = KIND
    title = "People universe v3"
    has_pools = True
    lists_answers = True

    pool = staticmethod(pool)
    truth = ReportedTruth
    oracle = staticmethod(indexes)

    def difficulty(self, question: Question) -> int:
        return 0 if question.class_ in ("one-step", "as-of", "source", "change") else 1

    def describe(self, world: World) -> Description:
        said = super().describe(world)
        told = said.about.format(rules=" ".join(rules(facts_of(world).dials.sources)))
        return msgspec.structs.replace(said, about=told)

    def form_of(self, document: Document) -> str:
        return "report"
