"""Index accounting as a table: what each document that training wrote gave or cost the questions that opened it.

Every arm under every reader: what holds with all of them says something about the store, not about one reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean

from kbgym.analysis.cells import Cell, CellSource, Line, Table, estimate, number
from kbgym.analysis.index_use import index_use
from kbgym.analysis.results import LABELS, POOLED, Results
from kbgym.analysis.statistics import Estimate, holm
from kbgym.analysis.tables.arms import difference_cell, flatten, float_of, gain_of, how, mean_cell, ratio_of
from kbgym.analysis.tables.stores import LAST, traces
from kbgym.analysis.verdict import LEVEL, Pair, judge
from kbgym.sanitize import safe_text
from kbgym.training.exam import Row, read_rows, summarise
from kbgym.training.exam_header import ExamHeader, KeptExam, kept_exams

MOST = 10  # at either end; `kbgym prove --json` has all


def index_accounts(results: Results) -> Table | None:
    """For one run that was examined on both stores; None where training wrote nothing."""
    arm = results.trainings[0]
    found = index_use(results.seeds[0].trained[arm].store, flatten(results.pairs(arm, POOLED)))
    used = [one for one in found if one.questions]
    if not found:
        return None
    costly = [one for one in used if one.harmful]
    files = [*results.sources(arm, POOLED, "shots", "flat"), *traces(results, arm, LAST)]
    lines = []
    for one in [*used[:MOST], *(one for one in costly[-MOST:] if one not in used[:MOST])]:
        id = f"index-use/{one.id}"
        cells: list[Cell | None] = [
            number(f"{id}/questions", len(one.questions), "questions that opened it", files, 0),
            number(f"{id}/saved", one.saved, "actions its questions would have lost without it, by estimate", files, 0),
            number(f"{id}/f1", one.f1, "F1 its questions would have lost without it, by estimate", files, 2),
        ]
        lines.append(Line(f"{one.id} {safe_text(one.text[:60])}", cells))
    never = len(found) - len(used)
    sentence = (
        f"Of {len(found):,} documents that training wrote, {len(used):,} were opened by a question of these exams and "
        f"{never:,} never; {len(costly):,} cost those questions more than they gave."
    )
    caption = (
        f"{results.caption()} Estimated from transcripts: without the document, a question that saw only there what it "
        "was asked for is taken to go as on the flat store; any other to be spared steps it had more than there."
    )
    heads = ("opened by", "actions saved", "F1 gained")
    return Table("index-use", "What each index gave or cost", heads, lines, caption, sentence, "document")


BASE = "hipporag"
SETS = {POOLED: "the question groups together", "test_in": "test_in", "test_out": "test_out"}
HEADS = ("F1", "actions", "characters", "F1 minus B3's", "actions over B3's", "characters over B3's")


def by_reader(results: Results, group: str) -> Table | None:
    """A block a reader, a line an arm, on one set of questions; None where several readers were not asked."""
    lines: list[Line] = []
    found: dict[str, list[tuple[str, list[Cell | None]]]] = {arm: [] for arm in results.trainings}
    for reader, read in results.readers.items():
        shown = [arm for arm in read.arms if group == POOLED or _is_asked(read, arm, group)]
        if len(shown) < 2:
            continue
        lines.append(Line(reader))
        for arm in shown:
            cells = _cells(read, f"readers/{group}/{reader}", arm, group, BASE in shown)
            lines.append(Line(read.label(arm), cells))
            if arm in found:
                found[arm].append((reader, cells))
    if not lines:
        return None
    sentence = " ".join(_sentence(results.label(arm), of_arm) for arm, of_arm in found.items() if of_arm)
    caption = f"Training by {results.agent}, once. {results.caption().partition('; ')[2].capitalize()}"
    title = f"Every arm under every reader: {SETS.get(group, LABELS[group])}"
    return Table(f"readers-{group}", title, HEADS, lines, caption, sentence, "reader and store")


def _is_asked(read: Results, arm: str, group: str) -> bool:
    return all(seed.has(one, group) for seed in read.seeds for one in (arm, "flat"))


def _cells(read: Results, table: str, arm: str, group: str, against: bool) -> list[Cell | None]:
    mean = partial(mean_cell, read, arm=arm, group=group)
    cells: list[Cell | None] = [
        mean(f"{table}/{arm}/{field}", field=field, digits=digits)
        for field, digits in (("f1", 3), ("actions", 2), ("characters", 0))
    ]
    if arm == BASE or not against:
        return [*cells, None, None, None]
    cells.append(difference_cell(read, table, arm, group, base=BASE))
    for field in ("actions", "characters"):
        ratio = ratio_of(read, read.pairs(arm, group, BASE), float_of(field)).interval
        formula = f"mean {field} on the arm over mean {field} on B3, same questions and reader; {how(read)}"
        files = read.sources(arm, group, field, BASE)
        cells.append(estimate(f"{table}/{arm}/{field}_over_b3", ratio, formula, files, mark=1.0))
    return cells


def _sentence(label: str, of_readers: list[tuple[str, list[Cell | None]]]) -> str:
    """Under how many readers a trained store beats B3, interval and all."""
    below = {"actions": 0, "characters": 0}
    lower = 0
    for _, (*_, difference, actions, characters) in of_readers:
        for name, cell in (("actions", actions), ("characters", characters)):
            below[name] += cell is not None and cell.high is not None and cell.high < 1
        lower += difference is not None and difference.high is not None and difference.high < 0
    many = len(of_readers)
    return (
        f"{label} against B3: the interval of actions lies below 1 under {below['actions']} of {many} readers, that of "
        f"characters under {below['characters']}; F1 is lower, interval and all, under {lower}."
    )


WITHIN = (1, 2, 4, 8)
_NEVER = "a pass that never saw everything counts with its whole budget"


def evidence(results: Results) -> Table | None:
    """Every arm on every group that has supports."""
    budget = results.settings.forward_budget

    def until(row: Row) -> float:
        found = row.evidence.actions if row.evidence is not None else None
        return float(budget if found is None else found)

    lines, ratios = [], {}
    for group in results.groups:
        shown = [arm for arm in results.arms if flatten(_supported(results, arm, group))]
        if shown:
            lines.append(Line(LABELS[group]))
        for arm in shown:
            pairs = _supported(results, arm, group)
            ratio = ratio_of(results, pairs, until)
            ratios[arm, group] = ratio
            lines.append(Line(results.label(arm), _evidence_cells(results, arm, group, pairs, until, ratio)))
    if not lines:
        return None
    adjusted = zip(ratios.items(), holm([ratio.p for ratio in ratios.values()]), strict=True)
    better = [f"{results.label(arm)} ({LABELS[g]})" for ((arm, g), one), p in adjusted if one.value < 1 and p <= LEVEL]
    sentence = (
        f"Everything is seen in fewer actions than on the flat store (at 5%, Holm over all {len(ratios)}) by: "
        f"{', '.join(better) or 'no arm'}."
    )
    columns = ("n", *(f"all within {k}" for k in WITHIN), "actions until all", "over flat", "within 8, minus flat")
    return Table("evidence", "How soon all evidence was seen", columns, lines, results.caption(), sentence, "arm")


def _supported(results: Results, arm: str, group: str) -> list[list[Pair]]:
    return [
        [pair for pair in of_seed if all(row.evidence is not None and row.evidence.supports for row in pair)]
        for of_seed in results.pairs(arm, group)
    ]


def _evidence_cells(
    results: Results,
    arm: str,
    group: str,
    pairs: Sequence[Sequence[Pair]],
    until: Callable[[Row], float],
    ratio: Estimate,
) -> list[Cell]:
    rows, id = flatten(pairs), f"evidence/{arm}/{group}"
    own, both = results.sources(arm, group, "evidence"), results.sources(arm, group, "evidence", "flat")
    cells = [number(f"{id}/n", len(rows), "questions with supports, asked on this arm and on flat", own, 0)]
    for k in WITHIN:
        share = fmean(_within(row, k) for row, _ in rows)
        cells.append(number(f"{id}/within-{k}", share, f"share with every support shown within {k} actions", own))
    actions = fmean(until(row) for row, _ in rows)
    cells.append(number(f"{id}/actions", actions, f"mean actions until every support was shown; {_NEVER}", own, 2))
    formula = f"those actions over the same on the flat store, same questions; {how(results)}"
    cells.append(estimate(f"{id}/ratio", ratio.interval, formula, both, mark=1.0))
    gained = gain_of(results, pairs, lambda row: _within(row, 8)).interval
    formula = f"share within 8 actions minus the same on the flat store; {how(results)}"
    cells.append(estimate(f"{id}/gained", gained, formula, both, mark=0.0))
    return cells


def _within(row: Row, actions: int) -> float:
    return float(row.evidence is not None and row.evidence.all_within(actions))


MOST_PAIRS = 30  # comparisons; a folder of very many exams has thousands


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
        if a.conditions != b.conditions or a.questions != b.questions or a.store == b.store or len(lines) == MOST_PAIRS:
            continue
        verdict = judge(read_rows(second.file), read_rows(first.file))
        if not verdict.n:
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
