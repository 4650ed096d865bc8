"""Sentences rewritten to stand alone by a plain function: what it is shown, what it may not do, what stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.corpus.importing import make
from kbgym.corpus.rewriting import Passage, flaw
from kbgym.errors import BadInput

NOTES = """# Boats

## Petrel

The Petrel is a crabber. She was built in 1994 at Hallow Slip. Her hull is green.

## Crew

The crew of the Petrel are:

- Amos Teller
- Lucia Brandt

```
sail(petrel)
```
"""
BUILT = Passage(
    "She was built in 1994 at Hallow Slip.",
    "Boats > Petrel",
    before=("The Petrel is a crabber.",),
    after=("Sold.",),
)
NAMED = ReadingOptions(rewriter="llm:local/m", code="keep")


def petrel(passages):
    """Names the boat, whatever it is asked."""
    return [one.sentence.replace("She", "The Petrel").replace("Her hull", "The Petrel's hull") for one in passages]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "boats.md").write_text(NOTES)
    return tmp_path / "notes"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The Petrel was built in 1994 at Hallow Slip.", None),
        ("The Petrel, a crabber, was built in 1994 at Hallow Slip.", None),
        ("She was built in 1994 at Hallow Slip.", None),
        ("", "empty"),
        (" \n ", "empty"),
        ("The Petrel was built in 1994\nat Hallow Slip.", "one plain line"),
        ("The Petrel was\u202e built in 1994 at Hallow Slip.", "one plain line"),
        ("The Petrel was built in 1994 at Hallow Slip. " * 20, "too long"),
        ("The Petrel was built in 1994 at Hallow Slip for 300 crowns.", "adds 300"),
        ("The Petrel was built in May 1994 at Hallow Slip in forty days.", "adds 'forty'"),
        ("The Petrel was built in 1994 at Hallow Slip in December.", "adds 'december'"),
        ("The Petrel was built in 1994 at Hallow Slip in Norway.", "adds 'norway', a name"),
        ("The Petrel was built at Hallow Slip.", "loses 1994"),
        ("In 1994 there was much rain.", "says something else"),
    ],
)
def test_what_a_rewriting_may_not_do(text, reason):
    found = flaw(text, BUILT)
    assert found is None if reason is None else found and reason in found


@given(st.text(min_size=1, max_size=60), st.text(max_size=60))
def test_a_sentence_is_never_a_flawed_rewriting_of_itself(sentence, heading):
    own = " ".join(sentence.split())
    found = flaw(own, Passage(own, heading))
    assert found is None or "empty" in found or "one plain line" in found


def test_what_a_rewriter_is_shown(notes):
    seen: list[Passage] = []
    corpus = read_corpus([notes], NAMED, rewrite=lambda passages: seen.extend(passages) or petrel(passages))
    assert [one.sentence for one in seen] == [
        "The Petrel is a crabber.",
        "She was built in 1994 at Hallow Slip.",
        "Her hull is green.",
        "Amos Teller",
        "Lucia Brandt",
    ], "code is not shown"
    assert seen[1] == Passage(
        "She was built in 1994 at Hallow Slip.",
        "Boats > Petrel",
        before=("The Petrel is a crabber.",),
        after=("Her hull is green.",),
    )
    assert seen[3].lead == "The crew of the Petrel are:" and seen[3].heading == "Boats > Crew"
    assert [document.text for document in corpus.documents][:4] == [
        "Boats > Petrel: The Petrel is a crabber.",
        "The Petrel was built in 1994 at Hallow Slip.",
        "The Petrel's hull is green.",
        "Boats > Crew: The crew of the Petrel are: Amos Teller",
    ], "what comes back unchanged keeps what introduces it"
    assert (corpus.asked, len(corpus.originals), corpus.not_rewritten) == (5, 2, 0)


def test_neighbours_never_come_from_another_page(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"title":"A","text":"One is here."}\n{"title":"B","text":"It is there."}\n')
    seen: list[Passage] = []
    read_corpus([tmp_path], NAMED, rewrite=lambda passages: seen.extend(passages) or [None] * len(passages))
    assert [(one.heading, one.before, one.after) for one in seen] == [("A", (), ()), ("B", (), ())]


def test_ids_and_spans_are_those_of_the_sentences(notes):
    plain, rewritten = make([notes], None, NAMED).world, make([notes], None, NAMED, rewrite=petrel).world
    assert [(d.id, d.source, d.kind) for d in plain.documents] == [
        (d.id, d.source, d.kind) for d in rewritten.documents
    ]
    assert [d.text for d in plain.documents] != [d.text for d in rewritten.documents]
    text = (notes / "boats.md").read_text()
    built = rewritten.documents[1]
    assert text[built.source.start : built.source.end] == "She was built in 1994 at Hallow Slip."
    assert rewritten.facts["rewrite"] == "llm:local/m" and "rewrite" not in plain.facts


def test_one_that_fails_stays_as_it_was_and_is_counted(notes):
    plain = make([notes], None, NAMED)
    made = make([notes], None, NAMED, rewrite=lambda passages: [None] * len(passages))
    assert [d.text for d in made.world.documents] == [d.text for d in plain.world.documents]
    assert made.corpus.not_rewritten == made.corpus.asked == 5


def test_an_update_keeps_what_did_not_change_and_edits_what_did(notes):
    old = make([notes], None, NAMED, rewrite=petrel).world
    again = make([notes], None, NAMED, old=old, rewrite=petrel)
    assert not again.changed and again.world.hash == old.hash
    (notes / "boats.md").write_text(NOTES.replace("Her hull is green.", "Her hull is blue now."))
    new = make([notes], None, NAMED, old=old, rewrite=petrel)
    assert [d.text for d in new.changed.edited] == ["The Petrel's hull is blue now."]
    assert not new.changed.added and not new.changed.removed
    assert [d.id for d in new.world.documents] == [d.id for d in old.documents]


def test_a_world_that_gets_a_rewriter_later_keeps_its_ids(notes):
    old = make([notes], None, NAMED).world
    new = make([notes], None, NAMED, old=old, rewrite=petrel)
    assert [d.id for d in new.world.documents] == [d.id for d in old.documents]
    assert len(new.changed.edited) == 2 and not new.changed.added and not new.changed.removed


def test_an_update_without_the_rewriter_is_refused(notes):
    old = make([notes], None, NAMED, rewrite=petrel).world
    with pytest.raises(BadInput, match="rewritten by llm:local/m; say --rewrite again"):
        make([notes], None, ReadingOptions(), old=old)


def test_a_support_may_be_words_of_the_file_or_of_the_rewriting(notes, tmp_path):
    questions = tmp_path / "questions.csv"
    questions.write_text(
        "question,answer,support\nWhen was the Petrel built?,1994,She was built in 1994\n"
        "What colour is the Petrel?,green,The Petrel's hull is green\n"
    )
    world = make([notes], questions, NAMED, rewrite=petrel).world
    assert [one.support for one in world.questions] == [(world.documents[1].id,), (world.documents[2].id,)]
    old = make([notes], questions, NAMED, old=world, rewrite=petrel).world
    assert old.hash == world.hash
