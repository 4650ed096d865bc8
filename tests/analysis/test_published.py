"""The paper's figures that stand beside ours are those in the paper's text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kbgym.analysis import published as paper

PLACES = [parent / "shared" / "paper" for parent in Path(__file__).resolve().parents]
FOUND = [file for place in PLACES if place.is_dir() for file in sorted(place.glob("*.txt"))]
pytestmark = pytest.mark.skipif(not FOUND, reason="the paper's text (../shared/paper) is not here")


@pytest.fixture(scope="module")
def text() -> str:
    """The source with its markup taken out and every space made one."""
    plain = FOUND[0].read_text(encoding="utf-8")
    plain = re.sub(r"\\(?:textbf|emph|mathbf|texttt)\{([^{}]*)\}", r"\1", plain)
    plain = plain.replace("{,}", "").replace("\\%", "%").replace("$", "").replace("^{*}", "").replace("\\rho", "rho")
    plain = plain.replace("{=}", "=").replace("\\approx", "about").replace("\\to", "to").replace("\\times", "x")
    return re.sub(r"[\s~]+", " ", plain)


def numbers(found: str) -> list[float]:
    return [float(one) for one in re.findall(r"[-+]?\d+(?:\.\d+)?", found)]


def row(text: str, start: str, head: str) -> list[float]:
    """The numbers of a table's line, after a heading."""
    return numbers(text[text.index(head, text.index(start)) + len(head) :].partition("\\\\")[0])


@pytest.mark.parametrize("arm, head", [("graphrag", "B2 GraphRAG &"), ("trained-paper", "Ours (trained) &")])
def test_the_gradient(text, arm, head):
    rho, f1 = "actions relative to B1", "\\multicolumn{5}{@{}l}{F1}"
    order = ("trained", "both", "one", "neither")
    assert row(text, rho, head) == [paper.RHO[arm][group] for group in order]
    assert row(text, f1, head) == [paper.F1[arm][group] for group in order]
    assert row(text, f1, "B1 flat &") == [paper.F1["flat"][group] for group in order]


def test_pooled(text):
    (found,) = re.findall(r"B1 answers in ([\d.]+) actions at F1 ([\d.]+)\.", text)
    assert tuple(map(float, found)) == (paper.ACTIONS["flat"]["pooled"], paper.F1["flat"]["pooled"])
    (b3,) = re.findall(r"reaches ([\d.]+) actions and ([\d.]+);", text)
    assert tuple(map(float, b3)) == (paper.ACTIONS["hipporag"]["pooled"], paper.F1["hipporag"]["pooled"])
    (ours,) = re.findall(r"27\.6% of it, reaches ([\d.]+) and ([\d.]+)\. Per", text)
    assert tuple(map(float, ours)) == (paper.ACTIONS["trained-paper"]["pooled"], paper.F1["trained-paper"]["pooled"])
    for arm, head in (
        ("graphrag", "B2 GraphRAG &"),
        ("hipporag", "B3 HippoRAG2 &"),
        ("trained-paper", "Ours (trained) &"),
    ):
        share, *bought = row(text, "coverage & actions / pt", head)
        assert (share / 100, *bought) == pytest.approx(paper.PER_POINT[arm])
    assert f"{paper.RATIOS['actions']}x and {paper.RATIOS['f1']}x more" in text
    assert f"{paper.LINKS['trained-paper']} links against its {paper.LINKS['hipporag']}" in text


def test_the_margin_and_the_budgets(text):
    assert f"margin \\delta = {paper.MARGIN}" in text
    assert f"{paper.TOKENS['graphrag'] // 1000}k build tokens" in text
    assert f"{paper.TOKENS['trained-paper'] / 1e6} M".replace(" M", "M") in text
    assert f"saves {paper.BREAK_EVEN['saved']} answering tokens" in text
    assert f"N about {paper.BREAK_EVEN['questions']} questions" in text.replace("N^* ", "N ").replace("N^{*} ", "N ")


def test_where_flat_ran_out_of_budget(text):
    (found,) = re.findall(r"F1 rises ([\d.]+) to ([\d.]+) on the trained questions, ([\d.]+) to ([\d.]+) at two .*? "
                          r"([\d.]+) to ([\d.]+) at one, and only ([\d.]+) to ([\d.]+) at none", text)  # fmt: skip
    values = list(map(float, found))
    order = ("trained", "both", "one", "neither")
    assert dict(zip(order, zip(values[::2], values[1::2], strict=True), strict=True)) == paper.OUT_OF_BUDGET


def test_phantomwiki(text):
    line = text[text.index("PhantomWiki & 0.769") :].partition("\\\\")[0]
    known = (paper.PHANTOMWIKI_RHO, paper.PHANTOMWIKI_F1)
    assert numbers(line) == [values[group] for group in ("trained", "one", "neither") for values in known]


def test_retention(text):
    part = text[text.index("On the same 100 questions") : text.index("These two epochs are not")]
    assert f"forward F1 rises {paper.RETENTION['all'][0]} to {paper.RETENTION['all'][1]}" in part
    for name in ("QC4", "QC6", "QC7", "QC8", "QC5", "QC10"):
        (found,) = re.findall(rf"{name} (?:go )?([\d.]+) to ([\d.]+)", part)
        assert tuple(map(float, found)) == paper.RETENTION[name]
    assert "QC1--QC3 and QC9 at 1.00 in both" in part
    assert all(paper.RETENTION[name] == (1.0, 1.0) for name in ("QC1", "QC2", "QC3", "QC9"))
    first, second = paper.RETENTION_STEPS
    assert f"{second} steps and 70k tokens against {first}" in part
    assert "{}/100 to {}/100".format(*paper.RETENTION_EXHAUSTED) in part
    n, f1, steps = paper.RETENTION_WITHIN
    assert f"on the {n} questions resolved within budget" in part
    assert f"{steps[0]} to {steps[1]} steps while F1 rises {f1[0]} to {f1[1]}" in part


def test_training(text):
    part = text[text.index("Forward accuracy climbs") : text.index("We report it because")]
    for values, between in (
        (paper.EDITS_A_PASS, " edits per iteration in epoch 1 against "),
        (paper.GROWTH, " per iteration against "),
    ):
        assert between.join(map(str, values)) in part
    assert "{} of 30 backward actions spent against {}".format(*paper.ACTIONS_A_PASS) in part
    assert (
        f"from {paper.FORWARD_HALVES[0]:.2f} over the first fifty iterations to {paper.FORWARD_HALVES[1]:.2f}" in part
    )
    for side, values in paper.EVAL.items():
        assert f"eval-{side} {' to '.join(f'{value:.2f}' for value in values)}" in part
    assert "{} to {}; the".format(*paper.MEAN_DEGREE) in text or "{} to {}, and the".format(*paper.MEAN_DEGREE) in text
    assert "{} to {}) but by adding".format(*paper.EMPTY) in text
    assert "Coverage reaches 24.8%" in text and paper.COVERAGE == (0.248, 0.276)
    for group, by_epoch in paper.LEARNING.items():
        assert f"{by_epoch[1][1]} to {by_epoch[2][1]}" in text, group
    assert "{} to {:.2f})".format(*(paper.LEARNING["trained"][epoch][0] for epoch in (1, 2))) in text


def test_what_was_built(text):
    for group, head in (
        ("city", "attribute: city &"),
        ("job or hobby", "attribute: hobby / job &"),
        ("person", "single-entity hub &"),
        ("two-hop relation", "relation, two-hop &"),
        ("one-hop relation", "relation, one-hop &"),
        ("all", "all scored indexes &"),
    ):
        n, degree, precision, recall = row(text, "Key the index is built on", head)
        assert (n, degree, precision / 100, recall / 100) == pytest.approx(paper.QUALITY[group])
    audit = paper.AUDIT
    assert f"we classify the {audit['authored']} by three" in text
    assert f"{audit['genuine']} (84.3%) are genuine indexes, {audit['stub']} (15.0%) are empty" in text
    assert f"{audit['index to index']} join two indexes and {audit['source to source']} join two source" in text
    out = "median {}, mean {}, max {}".format(*(audit[f"{name} out-degree"] for name in ("median", "mean", "largest")))
    assert out in text
    edits = paper.EDITS
    assert f"{edits['add']} add and {edits['link_many']} link\\_many calls" in text
    assert f"against {edits['edit']} edits, {edits['delete']} deletes and {edits['unlink']} unlinks" in text
    assert f"fired on {edits['judged']} candidates and merged {edits['merge']}" in text


def test_the_world(text):
    world = paper.WORLD
    splits = "/".join(str(world[name]) for name in ("train", "test_in", "test_out", "eval"))
    assert f"questions & {world['questions']} ({splits})" in text
    assert f"documents & {world['documents']} sentences" in text and f"all {world['probe']} probe questions" in text
