"""Index accounting as a table: what each document that training wrote gave or cost the questions that opened it."""

from __future__ import annotations

from kbgym.analysis.cells import Cell, Line, Table, number
from kbgym.analysis.index_use import index_use
from kbgym.analysis.results import POOLED, Results
from kbgym.analysis.tables.arms import flatten
from kbgym.analysis.tables.stores import LAST, traces
from kbgym.characters import safe_text

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
