"""Every arm under several readers: what is run, what is kept, and the tables recomputed from the raw files."""

from __future__ import annotations

import json
import shutil
from statistics import fmean

import msgspec
import pytest
from experiments import contents, run, small_experiment, small_plan

from kbgym.analysis.curves import eval_curve
from kbgym.analysis.report import make_report
from kbgym.analysis.results import open_results
from kbgym.analysis.tables.readers import by_reader, within
from kbgym.errors import BadInput
from kbgym.experiments.experiment import FILE
from kbgym.training.exam import read_rows

READERS = ("reference", "neutral:first", "general")
SETS = ("trained", "both", "one", "neither", "test_in", "test_out")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An experiment of one reader, taken up again with three."""
    place = small_experiment(tmp_path_factory.mktemp("readers") / "exp")
    before = contents(place)
    assert [line.head for line in by_reader(open_results(place), "pooled").lines if not line.cells] == ["reference"]
    run(place, msgspec.structs.replace(small_plan(), readers=READERS))
    after = contents(place)
    changed = {name for name, data in before.items() if after[name] != data}
    assert changed == {FILE}, "no training and no exam is made again"
    return place


def rows(folder, seed, reader, arm, group):
    place = (
        folder / f"seed-{seed}" / ("exams" if reader == "reference" else f"readers/{reader.replace(':', '-')}/exams")
    )
    return {row["id"]: row for row in map(json.loads, (place / f"{arm}-{group}.jsonl").read_text().splitlines())}


def test_every_arm_is_examined_by_every_reader_and_none_is_trained_for_them(folder):
    for reader in READERS:
        for arm in ("flat", "hipporag", "nostore", "trained-paper", "trained-class"):
            assert all(rows(folder, 0, reader, arm, group) for group in SETS)
    assert not list(folder.glob("seed-*/readers/*/exams/*@*")), "stores along the training are the trainer's business"
    shown = {row.observations for row in read_rows(folder / "seed-0/readers/general/exams/trained-class-one.jsonl")}
    assert shown == {"rich"}


def test_run_again_it_does_nothing_and_a_torn_exam_is_gone_on_with(folder):
    before = contents(folder)
    run(folder, small_plan())
    assert contents(folder) == before, "readers that were asked for stay asked for"
    file = folder / "seed-1/readers/neutral-first/exams/hipporag-test_in.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    run(folder, small_plan())
    assert contents(folder) == before


def test_the_table_of_readers(folder):
    table = by_reader(open_results(folder), "test_in")
    assert [line.head for line in table.lines if not line.cells] == list(READERS)
    found = {cell.id: cell for cell in table.cells}
    for reader in READERS:
        pairs = [
            (row, rows(folder, seed, reader, "hipporag", "test_in")[id])
            for seed in (0, 1)
            for id, row in rows(folder, seed, reader, "trained-class", "test_in").items()
        ]
        id = f"readers/test_in/{reader}/trained-class"
        ratio = sum(a["actions"] for a, _ in pairs) / sum(b["actions"] for _, b in pairs)
        assert found[f"{id}/actions_over_b3"].value == pytest.approx(ratio)
        assert found[f"{id}/test_in/difference"].value == pytest.approx(fmean(a["f1"] - b["f1"] for a, b in pairs))
        assert found[f"{id}/characters"].value == pytest.approx(fmean(a["characters"] for a, _ in pairs))
        flat = [rows(folder, seed, reader, "flat", "test_in") for seed in (0, 1)]
        ours = [rows(folder, seed, reader, "trained-class", "test_in") for seed in (0, 1)]
        gained = fmean(ours[at][id]["f1"] - row["f1"] for at in (0, 1) for id, row in flat[at].items())
        cell = found[f"readers/test_in/{reader}/over-flat/trained-class/test_in/difference"]
        assert cell.value == pytest.approx(gained) and f"{id}/actions_over_flat" in found
    assert len({found[f"readers/test_in/{reader}/trained-class/actions"].value for reader in READERS}) == 3
    assert table.sentence.count(f"of {len(READERS)} readers") == 4


def test_f1_within_a_budget_of_actions(folder):
    found = {cell.id: cell for cell in within(open_results(folder)).cells}
    asked = [
        row
        for seed in (0, 1)
        for group in SETS[:4]
        for row in rows(folder, seed, "reference", "trained-class", group).values()
    ]
    for k in (3, 5, 8):
        wanted = fmean(row["f1"] if row["actions"] <= k else 0.0 for row in asked)
        assert found[f"within/trained-class/{k}"].value == pytest.approx(wanted)


def test_the_eval_split_by_epoch_in_and_out_of_distribution(folder):
    found = {cell.id: cell for cell in eval_curve(open_results(folder), "trained-class").cells}
    trained = {
        (seed, json.loads(line)["template"])
        for seed in (0, 1)
        for line in (folder / f"seed-{seed}" / "world" / "questions.jsonl").read_text().splitlines()
        if json.loads(line)["split"] == "train"
    }
    for epoch, arm in enumerate(("flat", "trained-class@20", "trained-class")):
        known = [(seed, row) for seed in (0, 1) for row in rows(folder, seed, "reference", arm, "eval").values()]
        for side in ("in", "out"):
            scores = [row["f1"] for seed, row in known if ((seed, row["template"]) in trained) == (side == "in")]
            assert scores and found[f"eval/trained-class/epoch{epoch}/{side}/n"].value == len(scores)
            assert found[f"eval/trained-class/epoch{epoch}/{side}/f1"].value == pytest.approx(fmean(scores))


def test_a_reader_that_has_not_read_everything_is_left_out(folder, tmp_path):
    place = shutil.copytree(folder, tmp_path / "exp")
    (place / "seed-1/readers/general/exams/flat-one.jsonl").unlink()
    table = by_reader(open_results(place), "pooled")
    assert [line.head for line in table.lines if not line.cells] == ["reference", "neutral:first"]


def test_an_experiment_that_is_not_whole_yet_is_refused_in_a_sentence(folder, tmp_path):
    place = shutil.copytree(folder, tmp_path / "exp")
    (place / "seed-1/exams/flat-one.jsonl").unlink()
    with pytest.raises(BadInput, match="run the experiment first"):
        make_report(place)


def test_the_report_has_a_table_for_every_set(folder):
    names = {table.name for table in make_report(folder).tables}
    assert {"readers-pooled", "readers-test_in", "readers-test_out"} <= names
