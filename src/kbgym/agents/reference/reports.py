"""Notes of the agents of benchmark v3: reports, other names of people, indexes with their links, pages of searches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kbgym.chronicle.timeline import ALIASES, DatedReport, Timeline
from kbgym.chronicle.wordings import sentences, statement
from kbgym.gym.actions import Action, Delete, LinkMany, Read, Search, Unlink

Shown = Sequence[tuple[str, str]]  # documents as (id, text)


class Notes:
    """Everything read in a pass, or in all passes of a training.

    Attributes:
        texts: Documents by id.
        full: Full names by other names.
        headings: Texts of documents without reports, by id.
        links: The documents under each heading that was opened or linked.
        pages: The documents on each page of a search, by query.
        whole: The documents under the index of a value that is taken as complete, by (attribute, value).
    """

    def __init__(self) -> None:
        self._reports: dict[str, list[DatedReport]] = {}
        self._renamed: list[DatedReport] | None = None
        self._timeline: Timeline | None = None
        self._groups: dict[str | tuple[str, str], list[DatedReport]] | None = None
        self.texts: dict[str, str] = {}
        self.full: dict[str, str] = {}
        self.headings: dict[str, str] = {}
        self.links: dict[str, dict[str, None]] = {}
        self.pages: dict[str, list[list[str]]] = {}
        self.whole: dict[tuple[str, str], set[str]] = {}

    def saw(self, action: Action, shown: Shown) -> None:
        """Record an action that succeeded, and the documents it showed."""
        for id, text in shown:
            self._read(id, text)
        match action:
            case Search(query, page) if page == len(self.pages.get(query, ())) + 1:
                self.pages.setdefault(query, []).append([id for id, _ in shown])
            case Read(id):
                self.links[id] = {other: None for other, _ in shown if other != id}
            case LinkMany(source, targets):
                self.links.setdefault(source, {}).update(dict.fromkeys(targets))
            case Unlink(source, target):
                self.links.get(source, {}).pop(target, None)
            case Delete(id):
                self.headings.pop(id, None)
                self.links.pop(id, None)

    def _read(self, id: str, text: str) -> None:
        """Read the reports of a document; a pronoun refers to the person the document names first."""
        if self.texts.get(id) == text:
            return
        self.texts[id] = text
        found = sentences(text)
        if found is None:
            self.headings[id] = text
            return
        source, day, parts = found
        person, told = "", []
        for start, sentence in parts:
            if (said := statement(sentence)) is None:
                continue
            person = person or said.subject
            subject = said.subject or person
            told.append(DatedReport(said.relation, subject, said.value, day, source, id, start, ended=said.ended))
            if said.relation in ALIASES:
                self.full[said.value] = subject
        self._reports[id] = told
        self._renamed = self._timeline = self._groups = None

    @property
    def reports(self) -> list[DatedReport]:
        """Return all reports, with full names."""
        if self._renamed is None:
            self._renamed = [
                replace(one, subject=self.full[one.subject], alias=one.subject)
                if one.relation not in ALIASES and one.subject in self.full
                else one
                for told in self._reports.values()
                for one in told
            ]
        return self._renamed

    @property
    def timeline(self) -> Timeline:
        """Return the timeline of all reports, without members that are not under the complete index of their value."""
        if self._timeline is None:
            self._timeline = Timeline(
                one
                for one in self.reports
                if one.document in self.whole.get((one.relation, one.value), (one.document,))
            )
        return self._timeline

    def trust(self, attribute: str, value: str, documents: Iterable[str]) -> None:
        """Take the index of a value as complete."""
        self.whole[attribute, value] = set(documents)
        self._timeline = None

    @property
    def groups(self) -> dict[str | tuple[str, str], list[DatedReport]]:
        """Return the reports by person, subject or value, and by (relation, value)."""
        if self._groups is None:
            self._groups = {}
            for one in self.reports:
                names: list[str | tuple[str, str]] = [one.subject, one.value, (one.relation, one.value)]
                for group in dict.fromkeys(names):
                    self._groups.setdefault(group, []).append(one)
        return self._groups

    def about(self, person: str, relation: str = "") -> list[DatedReport]:
        """Return the reports on a person, or those on one relation."""
        return [one for one in self.groups.get(person, ()) if relation in ("", one.relation)]

    def find(self, text: str) -> str | None:
        """Return the id of the index with a text."""
        return next((id for id, heading in self.headings.items() if heading == text), None)
