"""Timelines: dated reports of several sources, and the state that they establish at any date.

A later report replaces an earlier one on the same fact. Of several reports of one date, that of the most reliable
source counts. A report may also end a fact; nothing is on record from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

SOURCES = ("Town Register", "Gazette", "Neighbourhood Letter")  # in decreasing order of reliability
ATTRIBUTES = ("job", "hobby", "city")
PARENTS = ("mother", "father")
ALIASES = ("nickname", "initial", "married")
NOW = "9999"
_RANK = {source: place for place, source in enumerate(SOURCES)}

Fact = tuple[str, ...]


class DatedReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A statement of one document.

    Attributes:
        subject: The full name of a person; so is `value` for relations between people.
        date: The date of the document, as an ISO date.
        start: The first character of the sentence in the document's text.
        ended: True if the report ends the fact that it names.
        alias: The name that the sentence uses instead of the subject's full name.
    """

    relation: str
    subject: str
    value: str
    date: str
    source: str
    document: str = ""
    start: int = 0
    end: int = 0
    ended: bool = False
    alias: str = ""

    @property
    def fact(self) -> Fact:
        """Return the key of the fact, by which later reports replace earlier ones; each friendship has its own."""
        if self.relation == "friend":
            return ("friend", *sorted((self.subject, self.value)))
        return (self.relation, self.subject)


class Timeline:
    """Reports by fact, with the state at a date."""

    def __init__(self, reports: Iterable[DatedReport] = ()) -> None:
        self._of: dict[Fact, list[DatedReport]] = {}
        self._related: dict[str, dict[str, None]] = {}
        self._holders: dict[tuple[str, str], list[DatedReport]] | None = None
        self.named: dict[str, DatedReport] = {}  # by alias: the report that introduces it
        for report in reports:
            self.add(report)

    def add(self, report: DatedReport) -> None:
        self._holders = None
        self._of.setdefault(report.fact, []).append(report)
        if report.relation in ALIASES:
            self.named.setdefault(report.value, report)
        elif report.relation in ("friend", "spouse"):
            self._related.setdefault(report.subject, {})[report.value] = None
            self._related.setdefault(report.value, {})[report.subject] = None

    def reports(self, *fact: str) -> Sequence[DatedReport]:
        """Return all reports on a fact in the order in which they were added."""
        return self._of.get(fact, ())

    def history(self, *fact: str, until: str = NOW) -> list[DatedReport]:
        """Return the report that counts for each date, in order of dates."""
        best: dict[str, DatedReport] = {}
        for report in self._of.get(fact, ()):
            if report.date <= until:
                other = best.get(report.date)
                if other is None or _RANK[report.source] < _RANK[other.source]:
                    best[report.date] = report
        return [best[date] for date in sorted(best)]

    def current(self, *fact: str, until: str = NOW) -> DatedReport | None:
        """Return the report that establishes a fact at a date, or None if nothing is on record."""
        last = self.history(*fact, until=until)[-1:]
        return last[0] if last and not last[0].ended else None

    def spouse(self, person: str) -> tuple[str, DatedReport] | None:
        """Return the spouse of a person and the report that states it, from either end."""
        for other in self._related.get(person, ()):
            for one, two in ((person, other), (other, person)):
                report = self.current("spouse", one)
                if report is not None and report.value == two:
                    return other, report
        return None

    def friends(self, person: str) -> dict[str, DatedReport]:
        """Return the present friends of a person, each with the report that establishes the friendship."""
        found = {other: self.current("friend", *sorted((person, other))) for other in self._related.get(person, ())}
        return {other: report for other, report in found.items() if report is not None}

    def holders(self, attribute: str, value: str) -> dict[str, DatedReport]:
        """Return all people who have a value at present, each with the report that establishes it."""
        if self._holders is None:
            self._holders = {}
            for fact in self._of:
                if fact[0] in ATTRIBUTES and (report := self.current(*fact)) is not None:
                    self._holders.setdefault((fact[0], report.value), []).append(report)
        return {report.subject: report for report in self._holders.get((attribute, value), ())}
