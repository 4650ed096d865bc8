"""The exams of one run that may stand side by side, found by what they say of themselves.

Rows are comparable only where reader, budget, search and observations are the same. A run may hold exams under several
such conditions; one is chosen, and the others are named.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from kbgym.canonical import digest_of
from kbgym.training.exam_header import KeptExam, kept_exams

FLAT = "flat"


class KeptPairs(msgspec.Struct, frozen=True):
    """Files by arm and set of questions, all under one condition; `left_out` are the exams under others."""

    files: dict[tuple[str, str], Path]
    left_out: tuple[KeptExam, ...] = ()

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, name in self.files))


def kept_pairs(run: Path, trained: str, reader: str) -> KeptPairs:
    """The condition with most sets examined on both stores; of equals, the one the run's own reader sat."""
    under: dict[str, list[KeptExam]] = {}
    for exam in kept_exams(run / "exams"):
        if exam.header.arm == FLAT:
            under.setdefault(digest_of(exam.header.conditions), []).append(exam)
    found = [(_paired(exams, trained), exams) for exams in under.values()]
    if not found:
        return KeptPairs({})
    files, chosen = max(found, key=lambda one: (len(one[0]), one[1][0].header.agent == reader))
    others = (exam for exams in under.values() if exams is not chosen for exam in exams)
    return KeptPairs(files, tuple(others))


def _paired(exams: Iterable[KeptExam], trained: str) -> dict[tuple[str, str], Path]:
    """By set: the same questions on the flat store and on the latest trained one; of several such, the most rows."""
    asked: dict[tuple[str, str], dict[str, KeptExam]] = {}
    for exam in exams:
        both = asked.setdefault((exam.header.set, exam.header.questions), {})
        arm = trained if exam.header.iteration else FLAT
        if arm not in both or both[arm].header.iteration < exam.header.iteration:
            both[arm] = exam
    found: dict[tuple[str, str], Path] = {}
    for (name, _), both in sorted(asked.items(), key=lambda item: _rows(item[1])):
        if len(both) == 2:
            found |= {(arm, name): exam.file for arm, exam in both.items()}
    return found


def _rows(both: dict[str, KeptExam]) -> int:
    return min(exam.file.stat().st_size for exam in both.values())


def how_to_compare(run: Path) -> str:
    """The commands that make what is missing."""
    sets = {arm: set[str]() for arm in (FLAT, "trained")}
    for exam in kept_exams(run / "exams"):
        sets["trained" if exam.header.iteration else FLAT].add(exam.header.set)
    if only := sorted(sets["trained"] - sets[FLAT]):
        return f"examine the flat store too: kbgym exam {run}@0 --set {only[0]}"
    if only := sorted(sets[FLAT] - sets["trained"]):
        return f"examine the trained store too: kbgym exam {run} --set {only[0]}"
    return f"make both: kbgym exam {run}@0 --set test_in && kbgym exam {run} --set test_in"
