"""The paper's figures that stand beside ours are those in the paper's text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kbgym.analysis import published as paper
from kbgym.analysis.cells import Cell

PLACES = [parent / "shared" / "paper" for parent in Path(__file__).resolve().parents]
FOUND = [file for place in PLACES if place.is_dir() for file in sorted(place.glob("*.txt"))]


@pytest.fixture(scope="module")
def text() -> str:
    """The source with its markup taken out and every space made one."""
    if not FOUND:
        pytest.skip("the paper's text (../shared/paper) is not here")
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


ARM = "trained-paper"
FIGURES = {figure.cell: figure for figure in paper.figures()}


def value(cell: str) -> float:
    return FIGURES[cell].value


@pytest.mark.parametrize("arm, head", [("graphrag", "B2 GraphRAG &"), ("trained-paper", "Ours (trained) &")])
def test_the_gradient(text, arm, head):
    rho, f1 = "actions relative to B1", "\\multicolumn{5}{@{}l}{F1}"
    order = ("trained", "both", "one", "neither")
    assert row(text, rho, head) == [value(f"gradient/{arm}/{group}/rho") for group in order]
    gains = zip(row(text, f1, head), row(text, f1, "B1 flat &"), strict=True)
    found = [value(f"gradient/{arm}/{group}/difference") for group in order]
    assert [round(mine - flat, 3) for mine, flat in gains] == found


def test_pooled(text):
    (b1,) = re.findall(r"B1 answers in ([\d.]+) actions at F1 ([\d.]+)\.", text)
    (b3,) = re.findall(r"reaches ([\d.]+) actions and ([\d.]+);", text)
    (ours,) = re.findall(r"27\.6% of it, reaches ([\d.]+) and ([\d.]+)\. Per", text)
    for arm, found in (("hipporag", b3), (ARM, ours)):
        actions, f1 = (float(one) for one in found)
        assert value(f"gradient/{arm}/pooled/rho") == round(actions / float(b1[0]), 3)
        assert value(f"gradient/{arm}/pooled/difference") == round(f1 - float(b1[1]), 3)
    heads = {"graphrag": "B2 GraphRAG &", "hipporag": "B3 HippoRAG2 &", ARM: "Ours (trained) &"}
    for arm, head in heads.items():
        _, *bought = row(text, "coverage & actions / pt", head)
        assert bought == [value(f"coverage/{arm}/actions_a_point"), value(f"coverage/{arm}/f1_a_point")]
    links = [int(value(f"arms/{arm}/links")) for arm in (ARM, "hipporag")]
    assert f"{links[0]} links against its {links[1]}" in text


def test_where_flat_ran_out_of_budget(text):
    (found,) = re.findall(r"F1 rises ([\d.]+) to ([\d.]+) on the trained questions, ([\d.]+) to ([\d.]+) at two .*? "
                          r"([\d.]+) to ([\d.]+) at one, and only ([\d.]+) to ([\d.]+) at none", text)  # fmt: skip
    values = list(map(float, found))
    for group, flat, trained in zip(("trained", "both", "one", "neither"), values[::2], values[1::2], strict=True):
        figure = FIGURES[f"budget/{ARM}/at-its-budget's-end/{group}/f1"]
        assert figure.value == trained and figure.than[1] == flat


def epochs(cell: str) -> tuple[float, float]:
    return value(f"{cell}/epoch1"), value(f"{cell}/epoch2")


def test_retention(text):
    part = text[text.index("On the same 100 questions") : text.index("These two epochs are not")]
    at = f"retention/{ARM}"
    for name in ("QC4", "QC6", "QC7", "QC8", "QC5", "QC10"):
        (found,) = re.findall(rf"{name} (?:go )?([\d.]+) to ([\d.]+)", part)
        figure = FIGURES[f"{at}/{name}/epoch2"]
        assert tuple(map(float, found)) == (figure.than[1], figure.value)
    whole = FIGURES[f"{at}/all/epoch2"]
    assert f"forward F1 rises {whole.than[1]} to {whole.value}" in part and "QC1--QC3 and QC9 at 1.00 in both" in part
    steps = epochs(f"{at}/steps")
    assert f"{steps[1]} steps and 70k tokens against {steps[0]}" in part
    assert "{:.0f}/100 to {:.0f}/100".format(*(100 * one for one in epochs(f"{at}/out-of-budget"))) in part
    f1, steps = epochs(f"{at}/within/f1"), epochs(f"{at}/within/steps")
    assert f"{steps[0]} to {steps[1]} steps while F1 rises {f1[0]} to {f1[1]}" in part


def test_training(text):
    part, at = text[text.index("Forward accuracy climbs") : text.index("We report it because")], f"edits/{ARM}"
    assert " edits per iteration in epoch 1 against ".join(map(str, epochs(f"{at}/edits-a-pass"))) in part
    assert " per iteration against ".join(map(str, epochs(f"{at}/documents-added-a-pass"))) in part
    assert "{} of 30 backward actions spent against {}".format(*epochs(f"{at}/actions-a-pass")) in part
    half = FIGURES[f"{at}/forward-f1-half-2"]
    assert f"from {half.than[1]:.2f} over the first fifty iterations to {half.value:.2f}" in part
    for side in ("in", "out"):
        figure = FIGURES[f"eval/{ARM}/epoch2/{side}/f1"]
        assert f"eval-{side} {figure.than[1]:.2f} to " in part and f"{figure.value:.2f}" in part
    degrees = "{} to {}".format(*epochs(f"{at}/links-of-an-index-at-the-end"))
    assert f"{degrees}; the" in text or f"{degrees}, and the" in text
    assert "{} to {}) but by adding".format(*epochs(f"{at}/indexes-without-a-link-at-the-end")) in text
    assert "Coverage reaches 24.8%" in text and epochs(f"{at}/coverage-at-the-end") == (0.248, 0.276)


def test_what_was_built(text):
    at = f"index-quality/{ARM}"
    for group, head in (
        ("city", "attribute: city &"),
        ("job-or-hobby", "attribute: hobby / job &"),
        ("person", "single-entity hub &"),
        ("two-hop-relation", "relation, two-hop &"),
        ("one-hop-relation", "relation, one-hop &"),
        ("all", "all scored indexes &"),
    ):
        *_, precision, recall = row(text, "Key the index is built on", head)
        assert (precision / 100, recall / 100) == (value(f"{at}/{group}/precision"), value(f"{at}/{group}/recall"))
    audit = {name: value(f"audit/{ARM}/{name}") for name in ("authored", "genuine", "stub", "source-to-source")}
    assert f"we classify the {audit['authored']} by three" in text
    assert f"{audit['genuine']} (84.3%) are genuine indexes, {audit['stub']} (15.0%) are empty" in text
    assert f"{audit['source-to-source']} join two source" in text
    median, mean = (value(f"audit/{ARM}/{name}-out-degree") for name in ("median", "mean"))
    assert f"median {median}, mean {mean}, max 33" in text
    names = ("add", "edit", "delete", "link_many", "unlink", "merge")
    edits = {name: value(f"edits/{ARM}/{name}-calls/all") for name in names}
    assert f"{edits['add']} add and {edits['link_many']} link\\_many calls" in text
    assert f"against {edits['edit']} edits, {edits['delete']} deletes and {edits['unlink']} unlinks" in text
    judged = value(f"edits/{ARM}/candidates-judged/all")
    assert f"fired on {judged} candidates and merged {edits['merge']}" in text


def test_grades():
    def graded(ours, low=None, high=None, **figure):
        cells = {"a": Cell("a", "", ours, "", (), low, high), "flat": Cell("flat", "", 0.5, "")}
        return paper.grade(paper.Published("", "", "a", **figure), cells)

    assert graded(0.7, 0.6, 0.8, value=0.75, than=1.0) == "within the interval"
    assert graded(0.7, 0.6, 0.8, value=0.9, than=1.0) == "same direction"
    assert graded(0.7, 0.6, 1.1, value=1.2, than=1.0) == "differs" == graded(0.7, 0.6, 0.8, value=1.2, than=1.0)
    assert graded(0.98, 0.9, 1.1, value=0.8, than=1.0) == "differs", "our interval holds 1 itself"
    assert graded(0.9, value=0.6, than=("flat", 0.4)) == "same direction" == graded(0.1, value=0.3, than=("flat", 0.4))
    assert graded(0.9, value=0.3, than=("flat", 0.4)) == "differs" == graded(0.9, value=0.3)
    assert graded(1.0, value=1.0, constructed=True) == "by construction" and graded(None, value=1.0) == "not here"
    assert graded(196_112, value=196_112.0, digits=0) == "within the interval"
