"""The reference reader of benchmark v3, and neutral readers of it.

The reference reader knows all wordings, both halves, and the rules that weigh reports: it is a ceiling for rule-based
readers, not a judge of arms. It parses reports in tool results, follows names, opens indexes that name the key, and
answers by the latest and most reliable report. Without an index it pages through a key until a page has no new member.
Of the neutral readers, `trusting` opens whatever names the key and trusts it if most of it is about the key,
`sceptical` opens the same and searches all the same, and `joining` asks about several people in one query.
"""

from __future__ import annotations

from collections.abc import Iterable

from kbgym.agents.reference.language import WORDS, index_text
from kbgym.agents.reference.reports import Notes, Shown
from kbgym.agents.trust import NEUTRAL_V3_READERS
from kbgym.chronicle.asking import read
from kbgym.chronicle.questions import QuestionTemplate, Slots, answer, relative
from kbgym.chronicle.timeline import ATTRIBUTES
from kbgym.gym.actions import Action, Answer, Read, Search
from kbgym.gym.observations import documents
from kbgym.gym.policy import PlannedPolicy, Steps, View
from kbgym.index_keys import IndexKey

ABOUT: dict[str, str] = WORDS["reports_about"]
MEMBERS: dict[str, str] = WORDS["reports_with"]
_PAGES = 3  # of one search
_FEW = 6  # maximum candidates to look up individually

Gathering = Steps[None]


class ReportReader(PlannedPolicy):
    """One pass: gather the reports for the question, then answer from them.

    Attributes:
        believes: Take an index as complete.
        joined: The number of people in one query.
    """

    believes = True
    joined = 1

    def __init__(self) -> None:
        super().__init__(self._plan, lambda view: Answer(self._answer(view)))
        self.notes = Notes()
        self._opened: set[str] = set()

    # -- answering ----------------------------------------------------------------------------------------------------

    def _plan(self, view: View) -> Steps[Action]:
        found = read(view.task.question)
        if found is None:
            shown = documents((yield Search(view.task.question)))
            return Answer(shown[0][1] if shown else "unknown")
        yield from self._gather(*found)
        return Answer(self._answer(view))

    def _answer(self, view: View) -> str:
        found = read(view.task.question)
        solution = answer(self.notes.timeline, *found) if found else None
        return solution.golds[0] if solution else "unknown"

    # -- gathering -----------------------------------------------------------------------------------------------------

    def _gather(self, template: QuestionTemplate, slots: Slots) -> Gathering:
        match template.ask:
            case "value":
                yield from self._follow(template, slots[0])
            case "source" | "as-of" | "before" | "since":
                yield from self._look_up(template.kind, slots[-1] if template.ask == "source" else slots[0], least=3)
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
                found = self.notes.timeline.holders(template.kind, slots[0])
                if len(found) > _FEW:
                    yield from self._members(template.other, slots[1])
                else:
                    yield from self._each(template.other, found)
            case "friends":
                yield from self._look_up("friend", slots[0])
                yield from self._friends_with(template.kind, *slots)
            case "extreme":
                yield from self._extreme(template, slots[0])

    def _follow(self, template: QuestionTemplate, person: str) -> Gathering:
        for relation in template.path:
            yield from self._look_up(relation, person)
            found = relative(self.notes.timeline, person, relation)
            if found is None:
                return
            person = found[0]
        yield from self._look_up(template.kind, person)

    def _friends_with(self, attribute: str, person: str, value: str) -> Gathering:
        """Look up the friends' values: in the index of the value if there is one, else one by one."""
        shown = yield from self._search(MEMBERS[attribute].format(value), 1)
        if not (yield from self._open_members(shown, attribute, value)):
            yield from self._each(attribute, self.notes.timeline.friends(person))

    def _extreme(self, template: QuestionTemplate, value: str) -> Gathering:
        yield from self._members(template.kind, value)
        holders = self.notes.timeline.holders(template.kind, value)
        if (template.kind, value) in self.notes.whole:
            births = index_text(IndexKey(template.kind, value, "born"))
            if self.notes.find(births) is None:
                yield from self._search(births, 1)
            yield from self._open(list(self.notes.headings.items()), value, "born")
        yield from self._each("born", holders)
        if template.other:
            chosen = answer(self.notes.timeline, template._replace(other=""), (value,))
            if chosen is not None and not chosen.unanswerable:
                yield from self._look_up(template.other, chosen.golds[0])

    def _verify(self, attribute: str, value: str) -> Gathering:
        """Look for later reports on members that no index confirms, while actions last."""
        if (attribute, value) not in self.notes.whole:
            holders = self.notes.timeline.holders(attribute, value)
            yield from self._ask(attribute, sorted(holders, key=lambda person: holders[person].date))

    def _each(self, relation: str, people: Iterable[str]) -> Gathering:
        """Look up a relation of the people for whom it is unknown."""
        yield from self._ask(relation, [one for one in people if self.notes.timeline.current(relation, one) is None])

    def _ask(self, relation: str, people: list[str]) -> Gathering:
        for start in range(0, len(people), self.joined):
            if self.joined == 1:
                yield from self._look_up(relation, people[start], pages=1)
            else:
                yield from self._search(ABOUT[relation].format(", ".join(people[start : start + self.joined])), 1)

    def _look_up(self, relation: str, person: str, pages: int = _PAGES, least: int = 2) -> Gathering:
        """Learn a relation of a person until a page reports nothing new; pages of other names are read too."""
        names = [person, *(alias for alias, full in self.notes.full.items() if full == person)]
        for name in names:
            for page in range(1, pages + 1):
                told = len(self.notes.about(person, relation))
                shown = yield from self._search(ABOUT[relation].format(name), page)
                if (yield from self._open(shown, name, relation)):
                    return
                if len(self.notes.about(person, relation)) == told and page >= least:
                    break
            if self.notes.about(person, relation) and relation != "friend" and least < _PAGES:
                return
        if len(names) == 1 and pages > 1 and not self.notes.about(person, relation):
            if person not in self.notes.full.values():
                yield from self._search(f"{person} is also called", 1)
            if person in self.notes.full.values():
                yield from self._look_up(relation, person)

    def _members(self, attribute: str, value: str, patience: int = 1) -> Gathering:
        """Learn the people with a value: from an index, or page by page."""
        page, idle = 1, 0
        while idle < patience:
            before = len(self.notes.timeline.holders(attribute, value))
            shown = yield from self._search(MEMBERS[attribute].format(value), page)
            if (yield from self._open_members(shown, attribute, value)) or not shown:
                return
            if len(self.notes.timeline.holders(attribute, value)) > before:
                idle = 0
            elif any(id not in self.notes.headings for id, _ in shown) or page >= _PAGES:  # indexes tell no members
                idle += 1
            page += 1

    # -- tools ---------------------------------------------------------------------------------------------------------

    def _search(self, query: str, page: int) -> Steps[Shown]:
        shown = documents((yield Search(query, page)))
        self.notes.saw(Search(query, page), shown)
        return shown

    def _open_members(self, shown: Shown, attribute: str, value: str) -> Steps[bool]:
        """Open an index of a value and take it as complete; return False if there is none."""
        opened = yield from self._open(shown, value, attribute)
        if opened:
            self.notes.trust(attribute, value, (id for id, _ in opened))
        return bool(opened)

    def _open(self, shown: Shown, key: str, relation: str) -> Steps[Shown]:
        """Open results that name a key but report nothing; return the documents of one that leads to members."""
        for id, text in shown:
            if id in self._opened or id not in self.notes.headings or not self._names(text, key, relation):
                continue
            self._opened.add(id)
            inside = documents((yield Read(id)))
            self.notes.saw(Read(id), inside)
            if self.believes and self._leads(inside[1:], key, relation):
                return inside[1:]
        return []

    def _names(self, text: str, key: str, relation: str) -> bool:
        """Return True if a heading is an index of the key."""
        texts = [key, index_text(IndexKey(relation, key))]
        if relation == "born":
            texts += [index_text(IndexKey(kind, key, "born")) for kind in ATTRIBUTES]
        return text.lower() in map(str.lower, texts)

    def _leads(self, inside: Shown, key: str, relation: str) -> bool:
        """Return True if the documents of an index report the relation."""
        ids = {id for id, _ in inside}
        return any(one.relation == relation and one.document in ids for one in self.notes.reports)


class TrustingReportReader(ReportReader):
    """Opens every index that names the key, and trusts it if most of it is about the key."""

    def _names(self, text: str, key: str, relation: str) -> bool:
        return key.lower() in text.lower()

    def _leads(self, inside: Shown, key: str, relation: str) -> bool:
        ids = {id for id, _ in inside}
        told = [one for one in self.notes.reports if one.document in ids]
        fit = [
            one for one in told if one.relation == relation and (key in (one.value, one.subject) or relation == "born")
        ]
        about = [one for one in told if key in (one.subject, one.value, one.alias)]
        return bool(fit) and 2 * max(len(fit), len(about)) > len(told)


class ScepticalReportReader(TrustingReportReader):
    """Opens every index that names the key, and still searches."""

    believes = False


class JoiningReportReader(TrustingReportReader):
    """Asks about several people in one query."""

    joined = 3


READERS = (TrustingReportReader, ScepticalReportReader, JoiningReportReader)
NEUTRAL_V3 = dict(zip(NEUTRAL_V3_READERS, READERS, strict=True))
