"""Exams wherever they lie, by what they say of themselves: what was asked of whom, and which two may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from kbgym.analysis.cells import Cell, CellSource, Line, Table, estimate, number
from kbgym.analysis.page import Report, sections
from kbgym.analysis.verdict import judge
from kbgym.characters import safe_text
from kbgym.errors import BadInput
from kbgym.protocol.exam import read_rows, summarise
from kbgym.protocol.exam_header import ExamHeader, KeptExam, kept_exams

MOST = 30  # comparisons; a folder of very many exams has thousands


def report_of_exams(place: Path) -> Report:
    """A folder that is no run and no experiment, but holds exams."""
    folder = place if kept_exams(place) else place / "exams"
    kept = kept_exams(folder)
    if not kept:
        raise BadInput(
            f"{place} is neither an experiment nor a run, and holds no exam that says what it is; make one with "
            f"`kbgym exam STORE --world WORLD --out {place}/NAME.jsonl`."
        )
    agents = ", ".join(sorted({safe_text(exam.header.agent) for exam in kept}))
    found = sections(("Exams", [exam_table(folder, place), comparisons(kept, place)]))
    notes = ("Every number has an id (hover over it): `kbgym report FOLDER --explain ID` prints where it came from.",)
    return Report("kbgym: report of exams", f"Every number here was produced by {agents}.", notes, found)


def exam_table(folder: Path, root: Path) -> Table | None:
    """Every exam of a folder that says what it is; None where there is none."""
    lines = []
    for exam in kept_exams(folder):
        rows, header = read_rows(exam.file), exam.header
        if not rows:
            continue
        found, files, id = summarise(rows), _source(exam, root), f"exams/{exam.file.stem}"
        cells: list[Cell | None] = [
            number(f"{id}/n", found.n, "questions asked", files, 0),
            number(f"{id}/f1", found.f1, "mean F1 of the questions with a score", files),
            number(f"{id}/em", found.em, "share answered exactly", files),
            number(f"{id}/actions", found.actions, "mean actions", files, 2),
            number(f"{id}/characters", found.characters, "mean characters read", files, 0),
        ]
        lines.append(Line(_label(header), cells))
    if not lines:
        return None
    heads = ("n", "F1", "EM", "actions", "characters")
    sentence = f"{len(lines)} exams say what was asked of whom."
    return Table("exams", "Exams, as they say of themselves", heads, lines, "A line an exam.", sentence, "exam")


def comparisons(kept: Sequence[KeptExam], root: Path) -> Table | None:
    """Two stores, the same questions under the same conditions: the later store against the earlier."""
    lines: list[Line] = []
    said: list[str] = []
    for first, second in combinations(sorted(kept, key=lambda exam: exam.header.iteration), 2):
        a, b = first.header, second.header
        if a.conditions != b.conditions or a.questions != b.questions or a.store == b.store or len(lines) == MOST:
            continue
        verdict = judge(read_rows(second.file), read_rows(first.file))
        if verdict.rho is None or verdict.accuracy is None:
            continue
        id = f"pairs/{first.file.stem}/{second.file.stem}"
        files = [*_source(second, root), *_source(first, root)]
        cells: list[Cell | None] = [
            number(f"{id}/n", verdict.n, "questions both have a score for", files, 0),
            estimate(f"{id}/rho", verdict.rho, "mean actions, second over first", files, mark=1.0),
            estimate(f"{id}/difference", verdict.accuracy, "mean F1, second minus first", files, mark=0.0),
        ]
        lines.append(Line(f"{_label(b)}, against {_label(a)}", cells))
        said.append(f"{_label(b)} {verdict.sentence}")
    if not lines:
        return None
    heads = ("n", "actions, of the other's", "F1 minus the other's")
    return Table("pairs", "Store against store", heads, lines, "Same questions, same reader.", " ".join(said), "exams")


def _label(header: ExamHeader) -> str:
    store = f"trained, iteration {header.iteration}" if header.iteration and header.arm == "flat" else header.arm
    return safe_text(f"{store}, {header.set}, {header.agent}")


def _source(exam: KeptExam, root: Path) -> list[CellSource]:
    return [CellSource(str(exam.file.relative_to(root)), "f1, em, actions, characters")]
