"""Reasons in words: which words count as rare, who belongs under whom, and which changes speak for themselves."""

from __future__ import annotations

import pytest

from kbgym.store import Record, Store, source
from kbgym.training.gate import Words, words_of

PEOPLE = ("Ada Alm", "Bo Ek", "Cy Dal", "Di Fox", "Eve Gran", "Fay Holm", "Gus Ljung", "Hal Moe")


def originals() -> list[Record]:
    """Eight people: four bakers and four millers; two live in Lund, one in Ystad, five in Oslo. And one on zebras."""
    jobs = [source(f"j{n}", f"{name}'s job is {'baker' if n < 4 else 'miller'}.") for n, name in enumerate(PEOPLE)]
    towns = ["Lund", "Lund", "Ystad", *["Oslo"] * 5]
    homes = [source(f"h{n}", f"{name} lives in {towns[n]}.") for n, name in enumerate(PEOPLE)]
    return [*jobs, *homes, source("odd", "Zebras graze.")]


def following(*more: Record) -> Words:
    words = Words()
    words.follow(Store([*originals(), *more]))
    return words


def test_words_are_small_singular_and_longer_than_one_letter() -> None:
    assert words_of("Friends of X9, a bus_stop and the GAS gases!") == {
        "friend",
        "of",
        "x9",
        "bus",
        "stop",
        "and",
        "the",
    } | {
        "gas",
        "gase",
    }


def test_the_rarest_words_and_who_holds_all_the_rare_ones() -> None:
    words = following(Record("n1", "Lund baker baker.", flag="authored"))
    assert words.rarest("People whose job is baker in Lund") == ["lund"], "nothing an agent wrote is counted"
    assert words.rarest("bakers and millers") == ["baker", "miller"]
    assert words.rarest("Nobody knows") == [] and words.candidates("Nobody knows") == set()
    assert words.candidates("Homes in Lund") == {"h0", "h1"} and words.candidates("Ada baker") == {"j0"}
    assert words.candidates("Zebras, bakers") == set(), "four times as often is rare as well, and nobody has both"
    assert words.candidates("Zebras in Oslo") == {"odd"}, "five times as often is not"


@pytest.mark.parametrize(
    ("index", "target", "belongs"),
    [
        ("People whose job is baker.", "Bo Ek's job is baker.", True),
        ("People whose job is baker.", "Any baker at all.", True),  # holds the word, names nobody
        ("People whose job is baker.", "Bo Ek lives in Lund.", True),  # of a baker
        ("People whose job is baker.", "Eve Gran lives in Oslo.", False),  # of a miller
        ("People whose job is baker.", "Bo lives in Lund.", False),  # half a name is nobody's
        ("People in Lund and zebras.", "Zebras graze.", True),
        ("Nobody knows.", "Bo Ek lives in Lund.", False),
    ],
)
def test_what_belongs_under_an_index(index: str, target: str, belongs: bool) -> None:
    assert following().speaks_for(index, target) is belongs


BAKER = "People whose job is baker."
INDEX = Record("n1", BAKER, ("j0", "j1"), flag="authored")
STRANGER = Record("n1", BAKER, ("j0", "j1", "j5"), flag="authored")


@pytest.mark.parametrize(
    ("was", "now", "reasoned"),
    [
        (None, INDEX, True),
        (None, Record("n1", BAKER, ("j0",), flag="authored"), True),  # one of four: just enough
        (None, Record("n1", "People whose job it is.", ("j0", "j1"), flag="authored"), True),
        (None, Record("n1", "Jobs.", ("j0",), flag="authored"), False),  # one of eight
        (None, STRANGER, False),
        (None, Record("n1", BAKER, flag="authored"), False),
        (INDEX, STRANGER, False),
        (STRANGER, INDEX, True),
        (INDEX, Record("n1", BAKER, ("j0", "j1", "j2"), flag="authored"), True),
        (INDEX, Record("n1", BAKER, ("j0",), flag="authored"), False),
        (
            STRANGER,
            Record("n1", BAKER, ("j0", "j1", "j5", "j2"), flag="authored"),
            True,
        ),  # the stranger was there before
        (
            INDEX,
            Record("n1", "People whose job is miller.", ("j0", "j1"), flag="authored"),
            False,
        ),  # other words, old links
        (INDEX, Record("n1", "Bakers.", ("j0", "j1"), flag="authored"), True),
        (INDEX, None, False),
        (STRANGER, None, False),  # some of it was right
        (Record("n1", BAKER, ("j5",), flag="authored"), None, True),
        (Record("n1", "Nobody knows.", flag="authored"), None, True),
        (INDEX, INDEX, True),
    ],
)
def test_what_speaks_for_a_change(was: Record | None, now: Record | None, reasoned: bool) -> None:
    before, after = (Store([*originals(), *([] if one is None else [one])]) for one in (was, now))
    words = Words()
    words.follow(before)
    assert list(words.unreasoned(before, after, {"n1"})) == ([] if reasoned else ["n1"])


def test_an_original_may_be_linked_but_not_rewritten() -> None:
    before = Store(originals())
    words = Words()
    words.follow(before)
    for change, expected in (
        (lambda store: store.link("j0", ["h0"]), []),
        (lambda store: store.link("j0", ["odd"]), ["j0"]),
        (lambda store: store.edit("j0", "Ada Alm's job is miller."), ["j0"]),
        (lambda store: store.delete("j0"), ["j0"]),
    ):
        after = before.copy()
        change(after)
        assert list(words.unreasoned(before, after, {"j0", "j1"})) == expected
    after = before.copy()
    after.edit("j1", "X.")
    after.delete("h0")
    assert list(words.unreasoned(before, after, {"j1", "h0", "j0"})) == ["h0", "j1"], "each of them, by id"


def test_words_follow_what_is_edited_and_deleted() -> None:
    store = Store(originals())
    words = Words()
    words.follow(store)
    store.edit("odd", "Yaks graze.")
    store.delete("j0")
    store.add("Zebras.")
    words.follow(store)
    assert words.rarest("zebra") == [] and words.candidates("yak") == {"odd"}
    assert words.candidates("baker") == {"j1", "j2", "j3"}
