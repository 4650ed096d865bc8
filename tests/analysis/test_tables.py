"""Tables recomputed from the raw files by another path: plain JSON and arithmetic, nothing of the package's."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from statistics import fmean

import msgspec
import pytest
import scipy.stats
from experiments import small_experiment

from kbgym.analysis.curves import learning, retention
from kbgym.analysis.results import open_results
from kbgym.analysis.tables import arms, stores, training
from kbgym.trace.folder import StoreFolder

GROUPS = ("trained", "both", "one", "neither")
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_experiment(tmp_path_factory.mktemp("tables") / "exp")


@pytest.fixture(scope="module")
def results(folder):
    return open_results(folder)


def raw(folder, seed, arm, group):
    file = folder / f"seed-{seed}" / "exams" / f"{arm}-{group}.jsonl"
    return {row["id"]: row for row in map(json.loads, file.read_text().splitlines())}


def asked(folder, arm, groups, seeds=SEEDS):
    """(arm's row, flat's row) of every question."""
    return [
        (row, raw(folder, seed, "flat", group)[id])
        for seed in seeds
        for group in groups
        for id, row in raw(folder, seed, arm, group).items()
    ]


def cells(table):
    return {cell.id: cell for cell in table.cells}


def test_the_gradient(folder, results):
    found = cells(arms.gradient(results))
    for arm in ("hipporag", "trained-paper", "trained-class"):
        for name in (*GROUPS, "pooled"):
            pairs = asked(folder, arm, GROUPS if name == "pooled" else (name,))
            mine, flat = sum(a["actions"] for a, _ in pairs), sum(b["actions"] for _, b in pairs)
            assert found[f"gradient/{arm}/{name}/rho"].value == pytest.approx(mine / flat)
            assert found[f"gradient/{arm}/{name}/f1"].value == pytest.approx(fmean(a["f1"] for a, _ in pairs))
            difference = fmean(a["f1"] - b["f1"] for a, b in pairs)
            assert found[f"gradient/{arm}/{name}/difference"].value == pytest.approx(difference)
            characters = fmean(a["characters"] for a, _ in pairs)
            assert found[f"gradient/{arm}/{name}/characters"].value == pytest.approx(characters)


def test_the_gradients_intervals(folder, results):
    """By hand: with two seeds, the spread of the two seeds' shares of the ratio, and Student's t with one degree."""
    found = cells(arms.gradient(results))["gradient/trained-paper/pooled/rho"]
    mine, flat = (
        [sum(pair[arm]["actions"] for pair in asked(folder, "trained-paper", GROUPS, (seed,))) for seed in SEEDS]
        for arm in (0, 1)
    )
    shares = [a / sum(mine) - b / sum(flat) for a, b in zip(mine, flat, strict=True)]
    n = len(asked(folder, "trained-paper", GROUPS))
    made_up = 2 * 0.1**2 / n**2  # two questions, a tenth of the mean either way
    half = scipy.stats.t.ppf(0.975, 1) * math.sqrt(2 * (sum(share**2 for share in shares) + made_up))
    rho = sum(mine) / sum(flat)
    assert (found.low, found.high) == pytest.approx((rho * math.exp(-half), rho * math.exp(half)))


def test_one_seed_by_itself(folder, results):
    found = cells(arms.by_seed(results))
    for seed in SEEDS:
        pairs = asked(folder, "trained-paper", ("both",), (seed,))
        mine, flat = sum(a["actions"] for a, _ in pairs), sum(b["actions"] for _, b in pairs)
        assert found[f"seeds/trained-paper/seed-{seed}/both/rho"].value == pytest.approx(mine / flat)


def test_retention(folder, results):
    """Forward F1 by class and epoch, from the lines of the traces."""
    scores = defaultdict(list)
    for seed in SEEDS:
        run = folder / f"seed-{seed}" / "trained-paper"
        classes = {}
        for line in (run / "world" / "questions.jsonl").read_text().splitlines():
            question = json.loads(line)
            classes[question["id"]] = question["class"]
        epochs = {}
        for line in (run / "trace.jsonl").read_text().splitlines():
            event = json.loads(line)
            event = event.get("data", event)
            if event.get("event") == "begin" and event["phase"] == "forward":
                epochs[event["iteration"]] = event["epoch"]
            elif event.get("event") == "grade":
                for name in (classes[event["question"]], "all"):
                    scores[name, epochs[event["iteration"]]].append(event["f1"])
    found = cells(retention(results, "trained-paper"))
    assert len(scores) > 10
    for (name, epoch), values in scores.items():
        assert found[f"retention/trained-paper/{name}/epoch{epoch}"].value == pytest.approx(fmean(values))
    on_flat = [row["f1"] for seed in SEEDS for row in raw(folder, seed, "flat", "lessons").values()]
    assert len(on_flat) == 40
    assert found["retention/trained-paper/all/exam_flat"].value == pytest.approx(fmean(on_flat))


def test_retention_within_budget_in_both_epochs(folder, results):
    """By hand from the traces: questions whose forward pass ended with an answer both times."""
    passes = {}
    for seed in SEEDS:
        epoch = steps = 0
        for line in (folder / f"seed-{seed}" / "trained-paper" / "trace.jsonl").read_text().splitlines():
            event = json.loads(line)
            name, phase = event.get("event"), event.get("phase")
            if name == "begin" and phase == "forward":
                epoch, steps = event["epoch"], 0
            elif name == "act" and phase == "forward":
                steps += 1
            elif name == "end" and phase == "forward":
                answered = event["outcome"] == "answered"
            elif name == "grade":
                passes.setdefault((seed, event["question"]), {})[epoch] = (event["f1"], steps, answered)
    both = [found for found in passes.values() if all(found[epoch][2] for epoch in (1, 2))]
    assert 0 < len(both) <= len(passes) == 40
    found = cells(retention(results, "trained-paper"))
    assert found["retention/trained-paper/within/f1/n"].value == len(both)
    for epoch in (1, 2):
        for place, name in enumerate(("f1", "steps")):
            mean = fmean(one[epoch][place] for one in both)
            assert found[f"retention/trained-paper/within/{name}/epoch{epoch}"].value == pytest.approx(mean)


def test_coverage_and_links_from_the_stores(folder, results):
    """The final store as plain JSON: every original some authored document points at."""
    shares, links, per_point = [], [], []
    for seed in SEEDS:
        run = folder / f"seed-{seed}" / "trained-class"
        records = [msgspec.to_builtins(record) for record in StoreFolder(run).store(40)]
        originals = {r["id"] for r in records if r.get("flag", "untouched") != "authored"}
        reached = {t for r in records if r.get("flag") == "authored" for t in r.get("links", [])} & originals
        total = len((run / "world" / "documents.jsonl").read_text().splitlines())
        shares.append(len(reached) / total)
        links.append(sum(len(r.get("links", [])) for r in records))
    found = cells(stores.arms(results))
    assert found["arms/trained-class/coverage"].value == pytest.approx(fmean(shares))
    assert found["arms/trained-class/links"].value == pytest.approx(fmean(links))
    assert fmean(shares) > 0.1
    pairs = asked(folder, "trained-class", GROUPS)
    per_point = fmean(b["actions"] - a["actions"] for a, b in pairs) / (100 * fmean(shares))
    points = cells(stores.per_point(results))
    assert points["coverage/trained-class/actions_a_point"].value == pytest.approx(per_point)


def test_the_budget_split_names_its_rows(folder, results):
    found = cells(arms.budget_split(results))
    cell = found["budget/trained-paper/done-with-actions-to-spare/pooled/n"]
    rows = [b for _, b in asked(folder, "trained-paper", GROUPS) if b["outcome"] == "answered" and b["actions"] < 15]
    assert cell.value == len(rows) > 0
    f1 = found["budget/trained-paper/done-with-actions-to-spare/pooled/f1_flat"]
    assert f1.value == pytest.approx(fmean(row["f1"] for row in rows))


def test_break_even_and_the_learning_curve(folder, results):
    spent = []
    for seed in SEEDS:
        lines = (folder / f"seed-{seed}" / "trained-paper" / "trace.jsonl").read_text().splitlines()
        spent.append(sum('"event":"act"' in line for line in lines))
    pairs = asked(folder, "trained-paper", ("trained",))
    saved = fmean(b["actions"] - a["actions"] for a, b in pairs)
    found = cells(training.breaking_even(results))
    assert found["break-even/trained-paper/actions/training"].value == pytest.approx(fmean(spent))
    assert found["break-even/trained-paper/actions/trained"].value == pytest.approx(fmean(spent) / saved)
    dearer = fmean(
        b["actions"] - a["actions"]
        for seed in SEEDS
        for group in GROUPS
        for id, b in raw(folder, seed, "hipporag", group).items()
        for a in [raw(folder, seed, "trained-class", group)[id]]
    )
    against = found["break-even/trained-class/actions/pooled/hipporag"]
    assert against.value == (pytest.approx(against_of(folder) / dearer) if dearer > 0 else None)
    curve = cells(learning(results, "trained-paper"))
    at = [row["f1"] for seed in SEEDS for row in raw(folder, seed, "trained-paper@8", "both").values()]
    assert curve["learning/trained-paper/8/both/f1"].value == pytest.approx(fmean(at))
    assert curve["learning/trained-paper/0/coverage"].value == 0.0
    assert curve["learning/trained-paper/40/spent"].value == pytest.approx(fmean(spent))


def against_of(folder):
    """Actions of all passes of the class trainings, mean over seeds."""
    traces = [(folder / f"seed-{seed}" / "trained-class" / "trace.jsonl").read_text() for seed in SEEDS]
    return fmean(text.count('"event":"act"') for text in traces)


def test_accuracy_is_decided_by_the_interval_of_the_difference(results):
    found = cells(arms.gradient(results))
    words = {id: cell for id, cell in found.items() if id.startswith("noninferiority/")}
    assert len(words) == 15 + 5
    for id, cell in words.items():
        difference = found[id.replace("noninferiority", "gradient") + "/difference"]
        wanted = "not lower" if difference.low > -0.03 else "lower" if difference.high < 0 else "undecided"
        assert cell.value == wanted


def test_every_value_is_finite_or_missing(results):
    for table in (arms.gradient(results), stores.store_audit(results)):
        assert table.caption
        for cell in table.cells:
            assert cell.value is None or isinstance(cell.value, str) or math.isfinite(cell.value)
