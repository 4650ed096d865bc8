"""Passages and cards: whole sentences under their headings, one card a page, and the way back to the file."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.corpus.importing import make
from kbgym.corpus.passages import LEAST, MOST, TINY
from kbgym.errors import BadInput
from kbgym.worlds.world import Document, Place, Places, Question

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGE = """\
---
title: Kestrel
owner: Ingrid Falk
refits:
  - year: 1998
    yard: Dunmore
  - year: 2007
    yard: Hallow
---
The Kestrel is a trawler of Marrow Quay. She is old.

## Crew

The crew are:

- Jonas Vael, skipper
- Petra Lind, cook

## Fees

| Berth | Fee |
| --- | --- |
| 5 | 55 |
| 6 | 60 |

## Unresolved

None.
"""


def documents(tmp_path: Path, **files: str) -> list[Document]:
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return read_corpus([tmp_path], ReadingOptions(links=True)).documents


def filler(sentences: int, about: str = "boat") -> str:
    return " ".join(f"Sentence {n} of the text about the {about} is here." for n in range(sentences))


def test_a_page_that_fits_is_its_own_card(tmp_path):
    (card,) = documents(tmp_path, a_md=PAGE)
    assert card.kind == "card" and card.about == ("Kestrel",)
    assert card.text == (
        "Kestrel: owner: Ingrid Falk. refits: year 1998: yard: Dunmore. refits: year 2007: yard: Hallow. "
        "The Kestrel is a trawler of Marrow Quay. She is old. "
        "Kestrel > Crew: The crew are: Jonas Vael, skipper; Petra Lind, cook. "
        "Kestrel > Fees: Berth: 5; Fee: 55 | Berth: 6; Fee: 60. Kestrel > Unresolved: None."
    )
    assert card.fields == (
        ("owner", "Ingrid Falk"),
        ("refits: year 1998: yard", "Dunmore"),
        ("refits: year 2007: yard", "Hallow"),
    )


def test_a_long_page_has_a_card_and_passages_cut_at_headings(tmp_path):
    text = PAGE.replace("She is old.", filler(16)).replace("## Fees", f"{filler(9, 'crew')}\n\n## Fees")
    card, *found = documents(tmp_path, a_md=text)
    assert card.kind == "card" and card.text.endswith(": owner: Ingrid Falk. The Kestrel is a trawler of Marrow Quay.")
    assert all(len(one.text) <= MOST + TINY for one in found)
    crew = [one.text for one in found if "crew" in one.text]
    assert crew[0].startswith("Kestrel > Crew: The crew are: Jonas Vael, skipper; Petra Lind, cook.")
    assert found[-1].text.endswith("Kestrel > Unresolved: None.") and len(found[-1].text) > TINY


def test_a_long_list_and_a_long_table_repeat_what_introduces_them(tmp_path):
    items = "".join(f"- item number {n} of a long list of things\n" for n in range(60))
    rows = "".join(f"| berth {n} | {n} crowns a day |\n" for n in range(60))
    found = documents(
        tmp_path, a_md=f"# T\n\nThings to bring:\n\n{items}\n## Fees\n\n| Berth | Fee |\n| - | - |\n{rows}"
    )
    lists = [one.text for one in found if "item number" in one.text]
    assert len(lists) > 2 and all(text.startswith("T: Things to bring: item") for text in lists)
    tables = [one for one in found if one.kind == "row"]
    assert len(tables) > 2 and all(one.text.startswith("T > Fees: Berth: berth") for one in tables)


PARAGRAPHS = st.lists(
    st.one_of(
        st.integers(1, 30).map(filler),
        st.sampled_from(["## Head", "### Deeper", "- item one\n- item two", "None.", "Note:", "```\nx = 1\n```"]),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=30)
@given(PARAGRAPHS)
def test_whatever_the_page_sentences_stay_whole_and_no_document_begins_another(tmp_path_factory, paragraphs):
    folder = tmp_path_factory.mktemp("any")
    text = "# T\n\nRuth is here.\n\n" + "\n\n".join(paragraphs) + "\n"
    (folder / "a.md").write_text(text)
    found = read_corpus([folder], ReadingOptions()).documents
    assert [one.kind for one in found].count("card") == 1
    for sentence in re.findall(r"Sentence \d+ of the text about the boat is here\.", text):
        assert any(sentence in one.text for one in found)
    texts = sorted(one.text for one in found)
    assert not any(other.startswith(one) for one, other in pairwise(texts))
    assert all(len(one.text) <= MOST + TINY for one in found)
    longer = [one for one in found if one.kind == "passage"]
    assert len(found) <= 3 + len(text) / (LEAST / 2) + text.count("#"), [one.text for one in longer]


def test_pages_that_say_the_same_are_told_apart(tmp_path):
    found = documents(
        tmp_path, a_md="# T\n\nRuth is here.\n", b_md="# T\n\nRuth is here. Nell too.\n", c_md="# T\n\nRuth is here.\n"
    )
    texts = [one.text for one in found]
    assert len(set(texts)) == 3 and not any(b.startswith(a) for a, b in pairwise(sorted(texts)))
    assert any("(a.md)" in text or "(c.md)" in text for text in texts)


# -- places -----------------------------------------------------------------------------------------------------------


def test_every_document_knows_its_place_also_after_an_update(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    text = PAGE.replace("She is old.", filler(40))
    (notes / "a.md").write_text(text)
    world = make([notes], None, ReadingOptions()).world
    ids = world.places.on_page("a.md")
    assert ids == tuple(one.id for one in world.documents) and len(ids) > 3
    assert [world.place_of(id).position for id in ids] == list(range(len(ids)))
    place = world.place_of(ids[2])
    assert isinstance(place, Place) and (place.page, place.title, place.file) == ("a.md", "Kestrel", "a.md")
    assert text[place.start : place.end].split()[0] in world.documents[2].text
    assert world.places.fields_of("a.md")[0] == ("owner", "Ingrid Falk") and world.place_of("nobody") is None
    (notes / "a.md").write_text(text.replace("Sentence 3 of", "Sentence three of"))
    made = make([notes], None, ReadingOptions(), old=world)
    assert made.changed is not None and [one.id for one in made.changed.edited] == [ids[1]]
    assert made.world.places.on_page("a.md") == ids
    assert Places(made.world.documents).place_of(ids[1]).start == world.place_of(ids[1]).start


# -- questions --------------------------------------------------------------------------------------------------------


def asked(tmp_path: Path, *rows: dict[str, object]) -> list[Question]:
    (tmp_path / "notes").mkdir(exist_ok=True)
    (tmp_path / "notes" / "a.md").write_text(PAGE.replace("She is old.", filler(40)))
    (tmp_path / "notes" / "b.md").write_text("# Petrel\n\nThe Petrel is green.\n")
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(make([tmp_path / "notes"], tmp_path / "q.jsonl", ReadingOptions()).world.questions)


def test_quotes_lead_to_passages_and_groups_are_worked_out(tmp_path):
    yard = "Kestrel: refits: year 1998: yard: Dunmore"
    found = asked(
        tmp_path,
        {"question": "Where was the first refit?", "answer": "Dunmore", "support": [yard], "split": "train"},
        {"question": "Yard of 1998?", "answer": "Dunmore", "support": [yard], "split": "test_in"},
        {"question": "Who owns her?", "answer": "Falk", "support": ["owner: Ingrid Falk"], "split": "test_in"},
        {"question": "Colour?", "answer": "green", "support": ["The Petrel is green."], "split": "test_in"},
        {"question": "Yards?", "members": ["Dunmore", "Hallow"], "support": [yard, "yard: Hallow"], "split": "test_in"},
        {"question": "Age?", "unanswerable": True, "split": "eval"},
        {"question": "Own?", "answer": "x", "support": [yard], "split": "eval", "group": "third wording"},
    )
    assert [one.group for one in found] == [
        "trained", "paraphrase", "same_page", "elsewhere", "sets", "elsewhere", "third wording",
    ]  # fmt: skip
    assert found[4].members == ("Dunmore", "Hallow") and found[4].golds == ("Dunmore, Hallow",)
    assert found[0].support == found[1].support and len(found[0].support) == 1


def test_a_quote_over_two_sentences_leads_to_its_passage(tmp_path):
    quote = "about the boat is here. Sentence 7 of the text"
    for support in (quote, f"Kestrel: {quote}", f"Kestrel > History: {quote}"):
        (found,) = asked(tmp_path, {"question": "What?", "answer": "boat", "support": [support]})
        assert len(found.support) == 1
    with pytest.raises(BadInput):
        asked(tmp_path, {"question": "What?", "answer": "boat", "support": [f"Petrel: {quote}"]})


# -- recall -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["skarn/pages", "harbour/notes"])
def test_of_sixty_sentences_drawn_from_the_examples_none_is_lost(folder):
    sources = sorted(path for path in (EXAMPLES / folder).rglob("*.*") if path.suffix in (".md", ".txt"))
    sentences = [
        sentence
        for path in sources
        for block in re.split(r"\n\s*\n|^---$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for sentence in re.split(r"(?<=[.!?])\s+", block)
        if len(sentence.split()) >= 4 and not re.search(r"[|`:\[#*]", sentence)
    ]
    said = " ".join(words(one.text) for one in read_corpus([EXAMPLES / folder], ReadingOptions()).documents)
    drawn = random.Random(7).sample(sentences, min(60, len(sentences)))
    assert [one for one in drawn if words(one) not in said] == []


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
