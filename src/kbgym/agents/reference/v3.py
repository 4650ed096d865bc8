"""The reference reader of benchmark v3: it knows all wordings, both halves, and the rules that weigh reports.

The reader is a ceiling for rule-based readers, not a judge of arms. It parses reports in tool results, follows names,
opens indexes that name the key, and answers by the latest and most reliable report. On the flat store it pages through
a key until a page has no new member.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from msgspec.structs import replace

from kbgym.chronicle.asking import read
from kbgym.chronicle.questions import QuestionTemplate, Slots, answer, relative
from kbgym.chronicle.timeline import ALIASES, ATTRIBUTES, DatedReport, Timeline
from kbgym.chronicle.wordings import sentences, statement
from kbgym.gym.actions import Action, Answer, Read, Search
from kbgym.gym.observations import documents
from kbgym.gym.policy import Forward, PlannedPolicy, Steps, View

ABOUT = {
    "job": ("{} works as", "the occupation of {}"),
    "hobby": ("{}'s hobby is", "{} is fond of"),
    "city": ("{} lives in", "the home of {}"),
    "born": ("{} was born on",),
    "spouse": ("{} is married to", "the marriage of {}"),
    "mother": ("{}'s mother is", "{} is a child of"),
    "father": ("{}'s father is", "{} is a child of"),
    "friend": ("friends of {}", "{} is a friend of"),
}
_MEMBERS = {"job": "works as {}", "hobby": "hobby is {}", "city": "lives in {}"}
_PAGES = 3  # of one search about one person
_FEW = 6  # maximum candidates to look up individually

Gathering = Steps[None]
Shown = list[tuple[str, str]]


class ReportReader(PlannedPolicy):
    """One pass: gather the reports for the question, then answer from them."""

    def __init__(self) -> None:
        super().__init__(self._plan, self._last)
        self._reports: dict[tuple[str, int], DatedReport] = {}
        self._full: dict[str, str] = {}  # full names by alias
        self._headings: dict[str, str] = {}  # documents without reports, by id
        self._opened: set[str] = set()
        self._whole: dict[tuple[str, str], set[str]] = {}  # documents under the index of a value
        self._known: Timeline | None = None

    # -- answering ----------------------------------------------------------------------------------------------------

    def _plan(self, view: View) -> Steps[Action]:
        question = _question(view)
        found = read(question)
        if found is None:
            shown = documents((yield Search(question)))
            return Answer(shown[0][1] if shown else "unknown")
        yield from self._gather(*found)
        return Answer(self._answer(view))

    def _answer(self, view: View) -> str:
        found = read(_question(view))
        solution = answer(self.timeline, *found) if found else None
        return solution.golds[0] if solution else "unknown"

    def _last(self, view: View) -> Action:
        return Answer(self._answer(view))

    @property
    def timeline(self) -> Timeline:
        if self._known is None:
            named = map(self._named, self._reports.values())
            self._known = Timeline(report for report in named if self._counts(report))
        return self._known

    def _counts(self, report: DatedReport) -> bool:
        """Return False for a member that is not under the index of its value."""
        members = self._whole.get((report.relation, report.value))
        return members is None or report.document in members

    def _named(self, report: DatedReport) -> DatedReport:
        """Return a report with full names."""
        if report.relation in ALIASES or report.subject not in self._full:
            return report
        return replace(report, subject=self._full[report.subject], alias=report.subject)

    # -- gathering -----------------------------------------------------------------------------------------------------

    def _gather(self, template: QuestionTemplate, slots: Slots) -> Gathering:
        match template.ask:
            case "value":
                yield from self._follow(template, slots[0])
            case "source" | "as-of" | "before" | "since":
                yield from self._look_up(template.kind, slots[-1] if template.ask == "source" else slots[0])
            case "count" | "list":
                yield from self._members(template.kind, slots[0], patience=2)
                yield from self._verify(template.kind, slots[0])
            case "compare":
                for value in slots:
                    yield from self._members(template.kind, value)
            case "friends-of":
                yield from self._look_up("friend", slots[0])
            case "join":
                yield from self._members(template.kind, slots[0])
                found = self.timeline.holders(template.kind, slots[0])
                if len(found) > _FEW:
                    yield from self._members(template.other, slots[1])
                else:
                    yield from self._each(template.other, found)
            case "friends":
                yield from self._look_up("friend", slots[0])
                yield from self._each(template.kind, self.timeline.friends(slots[0]))
            case "extreme":
                yield from self._extreme(template, slots[0])

    def _follow(self, template: QuestionTemplate, person: str) -> Gathering:
        for relation in template.path:
            yield from self._look_up(relation, person)
            found = relative(self.timeline, person, relation)
            if found is None:
                return
            person = found[0]
        yield from self._look_up(template.kind, person)

    def _extreme(self, template: QuestionTemplate, value: str) -> Gathering:
        yield from self._members(template.kind, value)
        yield from self._each("born", self.timeline.holders(template.kind, value))
        if template.other:
            chosen = answer(self.timeline, template._replace(other=""), (value,))
            if chosen is not None and not chosen.unanswerable:
                yield from self._look_up(template.other, chosen.golds[0])

    def _verify(self, attribute: str, value: str) -> Gathering:
        """Look for later reports on members that no index confirms, while actions last."""
        if (attribute, value) not in self._whole:
            for person in list(self.timeline.holders(attribute, value)):
                yield from self._look_up(attribute, person, pages=1)

    def _each(self, relation: str, people: Iterable[str]) -> Gathering:
        """Look up a relation of the people for whom it is unknown."""
        for person in list(people):
            if self.timeline.current(relation, person) is None:
                yield from self._look_up(relation, person, pages=1)

    def _look_up(self, relation: str, person: str, pages: int = _PAGES) -> Gathering:
        """Learn a relation of a person; pages of the second name are read if the first finds nothing."""
        names = [person, *(alias for alias, full in self._full.items() if full == person)]
        for name, query in product(names, ABOUT[relation][:pages]):
            for page in range(1, pages + 1):
                before = self._told(relation, person)
                shown = yield from self._search(query.format(name), page)
                if (yield from self._open(shown, name, relation)):
                    return
                if self._told(relation, person) == before and page > 1:
                    break
            if self._told(relation, person) and relation != "friend":
                return
        if len(names) == 1 and pages > 1:
            yield from self._search(f"{person} is also called", 1)
            if any(full == person for full in self._full.values()):
                yield from self._look_up(relation, person)

    def _told(self, relation: str, person: str) -> int:
        """Return the number of reports read on a relation of a person."""
        mutual = relation in ("friend", "spouse")
        return sum(
            one.relation == relation and (one.subject == person or (mutual and one.value == person))
            for one in map(self._named, self._reports.values())
        )

    def _members(self, attribute: str, value: str, patience: int = 1) -> Gathering:
        """Learn the people with a value: from an index, or page by page."""
        page, idle = 1, 0
        while idle < patience:
            before = len(self.timeline.holders(attribute, value))
            shown = yield from self._search(_MEMBERS[attribute].format(value), page)
            opened = yield from self._open(shown, value, attribute)
            if opened:
                self._whole[attribute, value] = {id for id, _ in opened}
                self._known = None
            if opened or not shown:
                return
            if len(self.timeline.holders(attribute, value)) > before:
                idle = 0
            elif any(id not in self._headings for id, _ in shown) or page >= _PAGES:  # indexes say nothing of members
                idle += 1
            page += 1

    # -- tools ---------------------------------------------------------------------------------------------------------

    def _search(self, query: str, page: int) -> Steps[Shown]:
        shown = documents((yield Search(query, page)))
        self._take_in(shown)
        return shown

    def _open(self, shown: Shown, key: str, relation: str) -> Steps[Shown]:
        """Open results that name a key but report nothing; return the documents of one that leads to members."""
        for id, text in shown:
            if id not in self._headings or id in self._opened or key.lower() not in text.lower():
                continue
            if relation not in ATTRIBUTES and text.lower() != key.lower() and relation not in text.lower():
                continue
            self._opened.add(id)
            inside = documents((yield Read(id)))[1:]
            self._take_in(inside)
            if any(report.relation == relation for one in inside for report in self._of(one[0])):
                return inside
        return []

    def _of(self, document: str) -> list[DatedReport]:
        return [report for report in self._reports.values() if report.document == document]

    def _take_in(self, shown: Shown) -> None:
        """Read the reports of documents; a pronoun refers to the person the document names first."""
        for id, text in shown:
            found = sentences(text)
            if found is None:
                self._headings[id] = text
                continue
            source, day, parts = found
            person = ""
            for start, sentence in parts:
                if (said := statement(sentence)) is None:
                    continue
                person = person or said.subject
                told: dict[str, Any] = {"document": id, "start": start, "ended": said.ended}
                subject = said.subject or person
                self._reports[id, start] = DatedReport(said.relation, subject, said.value, day, source, **told)
                if said.relation in ALIASES:
                    self._full[said.value] = subject
        self._known = None


def _question(view: View) -> str:
    assert isinstance(view.task, Forward)
    return view.task.question
