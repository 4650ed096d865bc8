"""The arm of pages: which pages a sentence names, what links to what, fields, and the reader that profits from it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from kbgym.agents.general.reader import GeneralReader
from kbgym.baselines import build_arm, engine_for_arm
from kbgym.baselines.pages import CROWD, SHARED, PageTitles, with_page_links
from kbgym.corpus.public import read_public
from kbgym.training.exam import examine, summarise
from kbgym.training.run import Settings
from kbgym.worlds.world import Document, Question, World, source_pages

DATA = Path(os.environ.get("KBGYM_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def documents(*texts: str) -> tuple[Document, ...]:
    """Sentences as a public set has them: "Title: sentence", the title being what they are about."""
    return tuple(Document(f"d{n}", text, about=(text.partition(": ")[0],)) for n, text in enumerate(texts, 1))


def named(text: str, *others: str) -> list[str]:
    pages = source_pages(documents(*others))
    return [pages[number].title for number in PageTitles(pages).named(text)]


def test_a_sentence_names_pages_by_their_titles_and_other_names() -> None:
    pages = ("Holm Yard: Holm Yard, also known as Holm Works, built boats.", "Ada Alm: Ada Maria Alm was a captain.")
    assert named("The Kestrel of Ada Alm came from Holm Yard.", *pages) == ["Ada Alm", "Holm Yard"]
    assert named("It left Holm Works under Ada Maria Alm.", *pages) == ["Holm Yard", "Ada Alm"]
    assert named("The Holm Yard Museum is closed.", *pages) == []  # part of a longer name


def test_a_word_that_is_also_written_small_is_no_name() -> None:
    pages = ("Harbour: The harbour is old.", "Lund: Lund is a town.")
    assert named("In Lund the Harbour was closed.", *pages) == ["Lund"]
    assert named("Port Lund is another town.", *pages) == []


def test_what_stands_in_brackets_decides_between_pages_of_one_name_or_it_is_left_out() -> None:
    pages = ("Big Holm (film): It was made in 1990.", "Big Holm (novel): It was written in 1980.")
    assert named("She starred in the film Big Holm.", *pages) == ["Big Holm (film)"]
    titles = PageTitles(source_pages(documents(*pages)))
    assert list(titles.named("She liked Big Holm.")) == [] and titles.ambiguous == {"Big Holm": 1}
    assert named("She liked Big Holm.", pages[0]) == ["Big Holm (film)"]  # only one page it could be


ASKED = "Who founded the yard that built Kestrel?"
WORLD = World(
    documents(
        "Kestrel: Kestrel is a boat.",
        "Kestrel: It was built by Holm Yard.",
        "Holm Yard: Holm Yard is in Lund.",
        "Holm Yard: Its founder was Ada Alm.",
        "Gull: The gull is grey.",
        "Gull: It eats fish.",
    ),
    (Question("q1", "test_in", "text", "two", ASKED, ("Ada Alm",), (), ("d2", "d4")),),
)


def test_the_first_sentence_stands_for_its_page() -> None:
    built = build_arm("pages", WORLD)
    links = {record.id: record.links for record in built.store}
    assert links["d1"] == ("d2", "d3")  # the rest of the page, then the page it names
    assert links["d2"] == ("d3",)
    assert links["d3"] == ("d4", "d1")  # and back, since few name it
    assert links["d5"] == links["d6"] == ()  # names none, is named by none
    assert built.notes["pages_named"] == 1 and len(built.store) == len(WORLD.documents)


def test_what_a_crowd_names_is_left_out() -> None:
    many = [f"Boat {n}x: It was built by Holm Yard." for n in range(CROWD + 1)]
    store = build_arm("pages", World(documents("Holm Yard: Holm Yard is in Lund.", *many))).store
    assert store.links == 0


def test_a_field_that_enough_pages_share_gets_a_document() -> None:
    texts = [f"Page {n}x: Start Date: 20{n:02}" for n in range(SHARED)]
    store = build_arm("pages", World(documents(*texts, "Page 0x: End Date: 2030"))).store
    authored = [record for record in store if record.flag == "authored"]
    assert [(one.text, len(one.links)) for one in authored] == [("Start Date, how many and which", SHARED)]


def test_links_of_the_files_lead_to_pages() -> None:
    plain = documents("Kestrel: It is a boat.", "Yard: The yard is old.", "Yard: It is closed.")
    linked = (Document("d1", plain[0].text, about=("Kestrel",), links=("d3",)), *plain[1:])
    assert build_arm("pages", World(linked)).store["d1"].links == ("d2",)


def test_a_world_can_have_the_links_itself() -> None:
    made = with_page_links(WORLD.documents)
    store = build_arm("pages", WORLD).store
    assert [document.links for document in made] == [store[document.id].links for document in WORLD.documents]


def _rows(world: World, arm: str, embedder=None):  # type: ignore[no-untyped-def]
    from kbgym.api.factory import embedder_named

    store = build_arm(arm, world).store
    engine = engine_for_arm(arm, store, embedder or embedder_named(""), search="hybrid")
    settings = Settings(search="hybrid", observations="rich")
    return asyncio.run(examine(store, engine, world.questions, GeneralReader, settings=settings))


def _within(rows, actions: int) -> float:  # type: ignore[no-untyped-def]
    return sum(row.evidence.all_within(actions) for row in rows) / len(rows)


def test_the_general_reader_follows_the_links(embedder) -> None:  # type: ignore[no-untyped-def]
    rows = _rows(WORLD, "pages", embedder)
    assert rows[0].evidence.actions is not None and rows[0].evidence.actions <= 3
    assert rows == _rows(WORLD, "pages", embedder)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the public question sets are not here (KBGYM_DATA names their folder)")
@pytest.mark.parametrize(
    ("name", "file", "within_4", "within_8"),
    [("hotpotqa", "hotpotqa-100.json", 0.85, 0.87), ("musique", "musique-100.jsonl", 0.0, 0.42)],
)
def test_public_sets(name: str, file: str, within_4: float, within_8: float) -> None:
    world = read_public(name, DATA / file).world
    flat, pages = _rows(world, "flat"), _rows(world, "pages")
    assert _within(pages, 4) >= within_4 and _within(pages, 8) >= within_8
    assert all(_within(pages, k) >= _within(flat, k) for k in range(1, 16))
    assert build_arm("pages", world).store.links < 5_000
    if name == "hotpotqa":
        assert summarise(pages).characters <= 0.65 * summarise(flat).characters
