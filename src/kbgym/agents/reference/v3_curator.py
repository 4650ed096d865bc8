"""The reference curator of benchmark v3: it builds an index for every value and person that a question names."""

from __future__ import annotations

from collections.abc import Iterable

from kbgym.agents.reference.v3 import ABOUT, Gathering, ReportReader, Shown
from kbgym.chronicle.asking import read
from kbgym.chronicle.timeline import ATTRIBUTES
from kbgym.gym.actions import Action, Add, Done, LinkMany, Read, Unlink
from kbgym.gym.observations import documents
from kbgym.gym.policy import Backward, Steps, View
from kbgym.gym.tools import MOST_TARGETS

_INDEX_TEXTS = {
    "job": "People whose job is {}",
    "hobby": "People whose hobby is {}",
    "city": "People who live in the city of {}",
}


class ReportCurator(ReportReader):
    """One backward pass: build or complete the indexes of the values and people that the question names.

    It links first and verifies members with the remaining actions: members whose value has changed are unlinked.
    """

    def __init__(self) -> None:
        super().__init__()
        self._linked: dict[str, set[str]] = {}  # documents under each index that was opened

    def _plan(self, view: View) -> Steps[Action]:
        assert isinstance(view.task, Backward)
        for turn in view.task.forward:
            self._take_in(documents(turn.observation))
        found = read(view.task.question)
        keys = list(zip(found[0].slots, found[1], strict=True)) if found else []
        indexes = {}
        for kind, slot in keys:
            if kind in ATTRIBUTES:
                indexes[kind, slot] = yield from self._index_value(kind, slot)
            elif kind == "person":
                yield from self._index_person(slot)
        for (kind, value), index in indexes.items():
            yield from self._verify_links(kind, value, index)
        return Done()

    def _last(self, view: View) -> Action:
        return Done()

    def _index_value(self, attribute: str, value: str) -> Steps[str]:
        """Link the index of a value to the reports on its members; return its id."""
        yield from self._members(attribute, value, patience=2)
        index = yield from self._index(_INDEX_TEXTS[attribute].format(value))
        holders = self.timeline.holders(attribute, value)
        yield from self._link(index, [report.document for report in holders.values()])
        return index

    def _verify_links(self, attribute: str, value: str, index: str) -> Gathering:
        """Look for a later report on each member, and unlink members who have another value now."""
        for person, report in self.timeline.holders(attribute, value).items():
            yield from self._look_up(attribute, person, pages=1)
            now = self.timeline.current(attribute, person)
            if now is None or now.value != value:
                yield Unlink(index, report.document)

    def _index_person(self, person: str) -> Gathering:
        for relation in ABOUT:
            yield from self._look_up(relation, person, pages=1)
        about = [one for one in map(self._named, self._reports.values()) if person in (one.subject, one.value)]
        index = yield from self._index(person)
        yield from self._link(index, [report.document for report in about])

    def _index(self, text: str) -> Steps[str]:
        """Return the id of the index with a text, added if none was shown."""
        for id, heading in self._headings.items():
            if heading == text:
                return id
        return documents((yield Add(text)))[0][0]

    def _link(self, index: str, targets: Iterable[str]) -> Gathering:
        new = [id for id in dict.fromkeys(targets) if id not in self._linked.get(index, ())]
        for start in range(0, len(new), MOST_TARGETS):
            yield LinkMany(index, tuple(new[start : start + MOST_TARGETS]))

    def _open(self, shown: Shown, key: str, relation: str) -> Steps[Shown]:
        """Open the indexes of a key to learn their links; they may be incomplete, so the search continues."""
        for id, _ in shown:
            if self._headings.get(id) in (key, _INDEX_TEXTS.get(relation, "").format(key)) and id not in self._opened:
                self._opened.add(id)
                inside = documents((yield Read(id)))[1:]
                self._take_in(inside)
                self._linked[id] = {document for document, _ in inside}
        return []
