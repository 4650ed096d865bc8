"""The question templates of benchmark v3 and the answers that a timeline gives to them.

`answer` returns the golds and the reports that support them, or None if the question is invalid. The same rules answer
from all reports (a world) or from those that were read (a reader).

    ask           slots       asks for
    value         P           an attribute of a person, or of a relative: `path` leads there
    source        X, P        an attribute according to one source
    as-of         P, D        an attribute at a date
    before        P           the previous value of an attribute
    since         P           the date of the first report of the present value
    count, list   V           the number or the names of all people with a value
    friends-of    P           the names of all friends
    extreme       V           the oldest or youngest person with a value; with `then`, an attribute of that person
    join          V, W        the names of all people with both values
    friends       P, V        the names of all friends with a value
    compare       V, W        by how many people the key V is larger than the key W
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from kbgym.chronicle.timeline import DatedReport, Timeline
from kbgym.chronicle.wordings import spoken

Slots = tuple[str, ...]
UNKNOWN = ("unknown",)
NONE = ("unknown", "none", "nobody", "0", "zero")
MOST_LISTED = 40  # names in a gold
DEEPEST = 5

_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty""".split()


class QuestionTemplate(NamedTuple):
    """A form of question.

    Attributes:
        slots: The kinds of its keys.
        wording: Its table of wordings.
        kind: The attribute that is asked for or that the first value belongs to.
        other: The attribute of the second value, or the one asked of an extreme.
        path: The relatives between the person named and the person asked about.
    """

    name: str
    class_: str
    reserved: bool
    ask: str
    slots: tuple[str, ...]
    wording: str
    kind: str = ""
    other: str = ""
    path: tuple[str, ...] = ()


class Solution(NamedTuple):
    golds: tuple[str, ...]
    reports: list[DatedReport]
    unanswerable: bool = False


_ORDER = {"oldest": min, "youngest": max}


def templates(depth: int = 3) -> dict[str, QuestionTemplate]:
    """Return the templates of `templates.toml` by name. `depth` is the longest path of relatives, plus one."""
    rows = tomllib.loads((files("kbgym.chronicle") / "templates.toml").read_text(encoding="utf-8"))
    found = {}
    for name, row in rows.items():
        row["slots"], path = tuple(row["slots"]), tuple(row.pop("path", ()))
        if len(path) < max(1, depth):
            found[name] = QuestionTemplate(**{"name": name, "wording": name, "reserved": False, "path": path, **row})
    return found


def answer(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    """Return the golds of a question and the reports that support them, or None if it is invalid."""
    solution = _ASKS[template.ask](timeline, template, slots)
    if solution is None:
        return None
    renamed = [timeline.named[report.alias] for report in solution.reports if report.alias in timeline.named]
    return solution._replace(reports=list(dict.fromkeys([*solution.reports, *renamed])))


def relative(timeline: Timeline, person: str, relation: str) -> tuple[str, DatedReport] | None:
    """Return a person's spouse, mother or father, and the report that states it."""
    if relation == "spouse":
        return timeline.spouse(person)
    report = timeline.current(relation, person)
    return None if report is None else (report.value, report)


def _value(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    person, visited = slots[0], {slots[0]}
    reports: list[DatedReport] = []
    for relation in template.path:
        found = relative(timeline, person, relation)
        if found is None:
            return Solution(UNKNOWN, [], True)
        if found[0] in visited:
            return None
        person = found[0]
        visited.add(person)
        reports.append(found[1])
    last = timeline.current(template.kind, person)
    return Solution(UNKNOWN, [], True) if last is None else Solution((last.value,), [*reports, last])


def _source(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution:
    source, person = slots
    told = [report for report in timeline.reports(template.kind, person) if report.source == source]
    last = max(told, key=lambda report: report.date, default=None)
    return Solution(UNKNOWN, [], True) if last is None or last.ended else Solution((last.value,), [last])


def _as_of(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution:
    last = timeline.current(template.kind, slots[0], until=slots[1])
    return Solution(UNKNOWN, [], True) if last is None else Solution((last.value,), [last])


def _before(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    history = timeline.history(template.kind, slots[0])
    if not history or any(report.ended for report in history[-2:]):
        return None
    values = [report for place, report in enumerate(history) if not place or report.value != history[place - 1].value]
    return Solution(UNKNOWN, [], True) if len(values) < 2 else Solution((values[-2].value,), values[-2:])


def _since(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    last = timeline.current(template.kind, slots[0])
    if last is None:
        return Solution(UNKNOWN, [], True)
    first = last
    for report in reversed(timeline.history(template.kind, slots[0])):
        if report.value != last.value or report.ended:
            break
        first = report
    return Solution((spoken(first.date), first.date), [first])


def _count(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution:
    found = timeline.holders(template.kind, slots[0])
    return _number(len(found), list(found.values()))


def _number(count: int, reports: list[DatedReport]) -> Solution:
    return Solution(numeral(count), reports) if count else Solution(NONE, [], True)


def numeral(count: int) -> tuple[str, ...]:
    """Return a count as digits and, up to twenty, as a word."""
    return (str(count), _WORDS[count]) if count < len(_WORDS) else (str(count),)


def _names(found: Mapping[str, Sequence[DatedReport]]) -> Solution | None:
    if not found:
        return Solution(NONE, [], True)
    reports = [report for told in found.values() for report in told]
    return Solution((", ".join(sorted(found)),), reports) if len(found) <= MOST_LISTED else None


def _list(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    return _names({one: (report,) for one, report in timeline.holders(template.kind, slots[0]).items()})


def _friends_of(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    return _names({one: (report,) for one, report in timeline.friends(slots[0]).items()})


def _extreme(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    holders = timeline.holders(template.kind, slots[0])
    births = {one: born for one in holders if (born := timeline.current("born", one)) is not None}
    if not births:
        return Solution(UNKNOWN, [], True)
    chosen = _ORDER[template.name.partition("-")[0]](births.values(), key=lambda born: born.value)
    reports = [*holders.values(), *births.values()]
    if not template.other:
        return Solution((chosen.subject,), reports)
    last = timeline.current(template.other, chosen.subject)
    return None if last is None else Solution((last.value,), [*reports, last])


def _join(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    one = timeline.holders(template.kind, slots[0])
    other = timeline.holders(template.other, slots[1])
    return _names({name: (report, other[name]) for name, report in one.items() if name in other})


def _friends(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    holders = timeline.holders(template.kind, slots[1])
    friends = timeline.friends(slots[0])
    return _names({name: (report, holders[name]) for name, report in friends.items() if name in holders})


def _compare(timeline: Timeline, template: QuestionTemplate, slots: Slots) -> Solution | None:
    one, other = (timeline.holders(template.kind, value) for value in slots)
    if not one and not other:
        return Solution(NONE, [], True)
    more = len(one) - len(other)
    return _number(more, [*one.values(), *other.values()]) if more > 0 and other else None


_ASKS: dict[str, Callable[[Timeline, QuestionTemplate, Slots], Solution | None]] = {
    "value": _value,
    "source": _source,
    "as-of": _as_of,
    "before": _before,
    "since": _since,
    "count": _count,
    "list": _list,
    "friends-of": _friends_of,
    "extreme": _extreme,
    "join": _join,
    "friends": _friends,
    "compare": _compare,
}
