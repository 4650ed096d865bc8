"""Index accounting as a table: what each document that training wrote gave or cost the questions that opened it.

Every arm under every reader: what holds with all of them says something about the store, not about one reader."""

from __future__ import annotations

from functools import partial

from kbgym.analysis.cells import Cell, Line, Table, estimate, number
from kbgym.analysis.index_use import index_use
from kbgym.analysis.results import LABELS, POOLED, Results
from kbgym.analysis.tables.arms import difference_cell, flatten, float_of, how, mean_cell, ratio_of
from kbgym.analysis.tables.stores import LAST, traces
from kbgym.sanitize import safe_text

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
