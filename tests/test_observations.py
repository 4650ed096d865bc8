"""The rendering of observations: marks, groups and folds; documents are recovered from both renderings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.gym.actions import Error, Found, Merged, Opened
from kbgym.gym.observations import documents, observe

TEXTS = {
    "n1": ("People who live in Lund.", ("d1", "d2", "d3", "d4", "d5")),
    "d1": ("Anna Berg lives in Lund.", ()),
    "d2": ("Anna Berg is a friend of Bo Alm.", ("n1",)),
    "d3": ("Cy Dahl lives in Lund.", ()),
    "d4": ("Bo Alm is a friend of Anna Berg.", ()),
    "d5": ("Anna Berg was born on 3 May 1950.", ()),
}
look = TEXTS.__getitem__


def test_what_has_links_says_how_many() -> None:
    shown = observe(Found(("n1", "d1", "d2", "d3", "d5"), 1), look, "rich").text
    assert shown.splitlines()[0] == "[n1] People who live in Lund. (5 links)"
    assert shown.splitlines()[2] == "[d2] Anna Berg is a friend of Bo Alm. (1 link)"


def test_an_observation_holds_the_documents_and_their_links_as_values() -> None:
    found, opened = (observe(result, look, "rich") for result in (Found(("n1", "d1"), 1), Opened("n1", TEXTS["n1"][1])))
    assert [(one.id, one.links) for one in found.documents] == [("n1", 5), ("d1", None)]
    assert [(one.id, one.mirrors) for one in opened.documents if one.mirrors] == [("d2", ("d4",))]
    assert opened.ids == set(TEXTS) and documents(opened)[1] == ("d1", "Anna Berg lives in Lund.")


def test_the_end_of_the_results_is_said() -> None:
    assert observe(Found(("d1", "d3"), 3), look, "rich").text.endswith("\nThe results end here.")
    assert observe(Found((), 4), look, "rich").text == "Nothing found on page 4."
    assert "results end" not in observe(Found(("d1", "d2", "d3", "d4", "d5"), 1), look, "rich").text


def test_an_index_shows_what_states_the_same_together_and_a_mirrored_fact_once() -> None:
    shown = observe(Opened("n1", TEXTS["n1"][1]), look, "rich").text
    assert shown == (
        "[n1] People who live in Lund. (5 links)\nIt links to:\n"
        "[d1] Anna Berg lives in Lund.\n[d3] Cy Dahl lives in Lund.\n\n"
        "[d2] Anna Berg is a friend of Bo Alm. (1 link) (also told as [d4])\n[d5] Anna Berg was born on 3 May 1950."
    )


@pytest.mark.parametrize(
    ("opened", "lines"),
    [
        (Opened("d1", ()), ["[d1] Anna Berg lives in Lund.", "It links to nothing."]),
        (
            Opened("d2", ("n1",), near=("d1",)),
            [
                "[d2] Anna Berg is a friend of Bo Alm.",
                "Beside it on its page:",
                "[d1] Anna Berg lives in Lund.",
                "It links to 1:",
                "[n1] People who live in Lund.",
            ],
        ),
        (
            Opened("n1", ("d1",), page=1, pages=1, total=1),
            ["[n1] People who live in Lund. (5 links)", "It links to:", "[d1] Anna Berg lives in Lund."],
        ),
        (
            Opened("n1", ("d1",), page=2, pages=2, total=5),
            [
                "[n1] People who live in Lund. (5 links)",
                "Page 2 of 2, 1 of 5 links.",
                "[d1] Anna Berg lives in Lund.",
            ],
        ),
    ],
)
def test_an_opened_document_shows_its_neighbours_its_links_or_a_page_of_them(opened: Opened, lines: list[str]) -> None:
    assert observe(opened, look, "rich").text.splitlines() == lines


def test_paper_is_as_it_always_was() -> None:
    shown = observe(Opened("n1", ("d1", "d2")), look, "paper").text
    assert shown == (
        "[n1] People who live in Lund.\nIt links to 2:\n"
        "[d1] Anna Berg lives in Lund.\n[d2] Anna Berg is a friend of Bo Alm."
    )


@pytest.mark.parametrize("kind", ["paper", "rich"])
def test_a_refused_addition_shows_what_is_there(kind: str) -> None:
    shown = observe(Merged("n1"), look, kind).text  # type: ignore[arg-type]
    assert ("(5 links)" in shown) == (kind == "rich") and documents(shown) == [("n1", TEXTS["n1"][0])]
    assert observe(Error("no such page."), look, kind).text == "Error: no such page."  # type: ignore[arg-type]


@given(st.dictionaries(st.from_regex(r"[a-z]\d{1,3}", fullmatch=True), st.text("abc XYZ.12", min_size=1), min_size=1))
def test_documents_come_back_out_of_both(texts: dict[str, str]) -> None:
    ids = tuple(texts)
    texts = {id: " ".join(text.split()) or "x" for id, text in texts.items()}
    for kind in ("paper", "rich"):
        shown = observe(Found(ids, 1), lambda id: (texts[id], ids[:2] if id == ids[0] else ()), kind)  # type: ignore[arg-type]
        assert documents(shown) == documents(shown.text) == list(texts.items())
