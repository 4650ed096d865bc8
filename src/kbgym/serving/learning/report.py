"""Report of learning from traffic: frequent questions, evidence on first pages, corrections, rejected lessons."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

import msgspec

from kbgym.serving.learning.question_log import QuestionLog, Window
from kbgym.store import Store
from kbgym.store.record import normalised
from kbgym.trace.corrections import Corrections, Taught

_MOST_NEEDS = 20
_MOST_REJECTED = 20


class Need(msgspec.Struct, frozen=True):
    """A question in its first wording, its frequency, and its mean F1 if graded."""

    question: str
    asked: int
    f1: float | None


class RejectedLesson(msgspec.Struct, frozen=True):
    """A lesson that the gate rejected or that failed, and the reason."""

    question: str
    reason: str


class Correcting(msgspec.Struct, frozen=True):
    """A current correction or alias, and the superseded documents that changed since."""

    lesson: Taught
    text: str
    changed: list[str]


class Learning(msgspec.Struct, frozen=True):
    """The report: counts, needs, means over windows of graded questions, corrections and rejected lessons."""

    asked: int
    graded: int
    waiting: int
    needs: list[Need]
    windows: list[Window]
    corrections: list[Correcting]
    rejected: list[RejectedLesson]


def learning_of(questions: QuestionLog, corrections: Corrections, store: Store) -> Learning:
    """Return the report of the latest questions and of everything that people taught."""
    latest = list(questions.asked.values())
    counts, first, grades = Counter[str](), dict[str, str](), dict[str, list[float]]()
    for asked in latest:
        key = normalised(asked.question)
        counts[key] += 1
        first.setdefault(key, asked.question)
        if asked.f1 is not None:
            grades.setdefault(key, []).append(asked.f1)
    often = counts.most_common(_MOST_NEEDS)
    needs = [Need(first[key], n, fmean(grades[key]) if key in grades else None) for key, n in often]
    rejected = [RejectedLesson(one.question, one.note) for one in latest if one.state in ("refused", "set aside")]
    totals = questions.total, questions.graded, len(questions.to_learn)
    taught = standing(corrections, store)
    return Learning(*totals, needs, list(questions.windows), taught, rejected[-_MOST_REJECTED:])


def standing(corrections: Corrections, store: Store) -> list[Correcting]:
    """Return the current corrections and aliases, oldest first."""
    return [
        Correcting(lesson, store[lesson.document].text, lesson.changed_since(store))
        for lesson in corrections.standing(store)
    ]


def digest(name: str, report: Learning) -> str:
    """Return the report as Markdown."""
    needs, windows, taught = list[str](), list[str](), list[str]()
    for need in report.needs:
        often = "once" if need.asked == 1 else f"{need.asked} times"
        score = "" if need.f1 is None else f", F1 {need.f1:.2f}"
        needs.append(f"- {need.question} ({often}{score})")
    if report.windows:
        windows += ["| questions | F1 | actions | answer on the first page |", "| --- | --- | --- | --- |"]
    for one in report.windows:
        seen = "" if one.first_page is None else f"{one.first_page:.2f}"
        windows.append(f"| {one.first} to {one.last} | {one.f1:.2f} | {one.actions:.1f} | {seen} |")
    for each in report.corrections:
        stale = f" Changed in the files since: {', '.join(each.changed)}." if each.changed else ""
        taught.append(f"- [{each.lesson.document}] {each.text} ({each.lesson.by}, {each.lesson.on}).{stale}")
    rejected = [f"- {one.question}: {one.reason}" for one in report.rejected]
    titles = ("Questions asked most", "Graded questions over time", "Corrections", "Rejected lessons")
    lines = [f"# What {name} learnt", "", f"{report.asked:,} questions asked, {report.graded:,} graded."]
    for title, rows in zip(titles, (needs, windows, taught, rejected), strict=True):
        lines += ["", f"## {title}", "", *(rows or ["None."])]
    return "\n".join(lines) + "\n"
