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
    return Learning(
        questions.total,
        questions.graded,
        len(questions.to_learn),
        [
            Need(first[key], n, fmean(grades[key]) if key in grades else None)
            for key, n in counts.most_common(_MOST_NEEDS)
        ],
        list(questions.windows),
        standing(corrections, store),
        [RejectedLesson(one.question, one.note) for one in latest if one.state in ("refused", "set aside")][
            -_MOST_REJECTED:
        ],
    )


def standing(corrections: Corrections, store: Store) -> list[Correcting]:
    """Return the current corrections and aliases, oldest first."""
    return [
        Correcting(lesson, store[lesson.document].text, lesson.changed_since(store))
        for lesson in corrections.standing(store)
    ]


def digest(name: str, report: Learning) -> str:
    """Return the report as Markdown."""
    lines = [f"# What {name} learnt", "", f"{report.asked:,} questions asked, {report.graded:,} graded."]
    lines += ["", "## Questions asked most", ""]
    for need in report.needs:
        often = "once" if need.asked == 1 else f"{need.asked} times"
        score = "" if need.f1 is None else f", F1 {need.f1:.2f}"
        lines.append(f"- {need.question} ({often}{score})")
    lines += [] if report.needs else ["None."]
    lines += ["", "## Graded questions over time", ""]
    if report.windows:
        lines += ["| questions | F1 | actions | answer on the first page |", "| --- | --- | --- | --- |"]
    for one in report.windows:
        seen = "" if one.first_page is None else f"{one.first_page:.2f}"
        lines.append(f"| {one.first} to {one.last} | {one.f1:.2f} | {one.actions:.1f} | {seen} |")
    lines += [] if report.windows else ["None."]
    lines += ["", "## Corrections", ""]
    for taught in report.corrections:
        stale = f" Changed in the files since: {', '.join(taught.changed)}." if taught.changed else ""
        lines.append(f"- [{taught.lesson.document}] {taught.text} ({taught.lesson.by}, {taught.lesson.on}).{stale}")
    lines += [] if report.corrections else ["None."]
    lines += ["", "## Rejected lessons", ""]
    lines += [f"- {one.question}: {one.reason}" for one in report.rejected] or ["None."]
    return "\n".join(lines) + "\n"
