"""Sentences: split where a reader would, self-contained where they would dangle, never too long."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.corpus.statements import MOST_TEXT, WINDOW, clean, pieces, split
from kbgym.gym import tools
from kbgym.gym.actions import Add

# Every line is one paragraph, given as its sentences.
NASTY = [
    ["Dr. Smith met Mrs. O'Neil at 5 p.m. on Friday.", "They left at six."],
    ["The U.S. Navy bought it.", "It sank."],
    ["He works for Acme Inc. in Boston.", "She does not."],
    ["The firm, Acme Corp., closed.", "Nobody knew why."],
    ["See fig. 3 and sec. 2.1 for details.", "The rest is in vol. 4, pp. 12-15."],
    ["It costs $3.50 today.", "Yesterday it cost $4.00."],
    ["We use e.g. ropes, i.e. lines, etc. for this.", "It works."],
    ["Version 2.0.1 is out.", "Upgrade now!"],
    ['"Where is it?" he asked.', '"Here."', "She smiled."],
    ["J. R. R. Tolkien wrote it.", "C. S. Lewis read it."],
    ["Visit www.example.org/a.b?c=d. today or write to a.b@c.org.", "Thanks."],
    ["Is it done?!", "Yes... it is.", "Good."],
    ["The temperature was -3.5 °C at 06:30.", "The wind blew from the N.W. all day."],
    ["St. Mary's Rd. is closed.", "Use Main St. instead."],
    ["She was born on Jan. 5, 1901.", "He was born in Sept. 1903."],
    ["He holds a Ph.D. in physics.", "She has an M.A. and a B.Sc. from Oslo."],
    ["The boat (built in 1923 by Olsen & Co.) is red.", "It leaks."],
    ["It was No. 7 of 12.", "The no. 5 berth is free."],
    ["Mr. Hale vs. Mr. Green was heard by Gov. Lee.", "Lt. Col. Ames spoke."],
    ["Das Boot ist ca. 12 m lang.", "Es liegt z. B. in Hamburg."],
    ["The fleet had approx. 40 boats.", "None stayed."],
    ['He said "Stop." and left.', "She stayed."],
    ["Yahoo! was bought in 2017.", "Who would buy it now?"],
    ["The meeting ended at 3 p.m.", "Nobody stayed."],
    ["彼は船長です。", "船は赤い。"],
    ["It is 5 ft. 3 in. tall.", "That is short."],
    ["Edit config.yaml first.", "Then run make."],
    ["I went with A. Berg and B. Dahl, Jr. to town.", "We ate."],
    ["The ship, H.M.S. Victory, is old.", "Visit it."],
    ["1. Berth one is full.", "Berth two is not."],
]


@pytest.mark.parametrize("sentences", NASTY, ids=lambda sentences: sentences[0][:30])
def test_nasty_lines(sentences):
    text = " ".join(sentences)
    assert [text[start:end] for start, end in split(text)] == sentences


def test_a_line_end_does_not_end_a_sentence():
    text = "The Kestrel is\na trawler. She\nis old."
    assert [text[start:end] for start, end in split(text)] == ["The Kestrel is\na trawler.", "She\nis old."]


@given(st.text(max_size=300))
def test_splitting_loses_nothing_but_white_space(text):
    spans = split(text)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    assert all(a < b <= c < d for (a, b), (c, d) in pairwise(spans))


def test_the_longest_document_is_the_longest_text_an_agent_may_send():
    assert MOST_TEXT == tools.MOST_TEXT


@given(st.text(alphabet="ab ,;:-\n", min_size=1, max_size=400), st.integers(10, 60))
def test_a_long_stretch_is_cut_into_pieces_that_fit(text, most):
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    found = list(pieces(text, start, end, most)) if start < end else []
    assert all(0 < b - a <= most for a, b in found)
    assert "".join("".join(text[a:b].split()) for a, b in found) == "".join(text.split())


def test_nothing_ends_inside_a_code_span():
    text = "Use panic!, assert! and assert_eq! here. Bar! is one. It works."
    spans = [
        (text.index(word), text.index(word) + len(word)) for word in ("panic!, assert! and assert_eq!", "Bar! is one")
    ]
    assert [text[start:end] for start, end in split(text, solid=spans)] == [
        "Use panic!, assert! and assert_eq! here.",
        "Bar! is one.",
        "It works.",
    ]


@given(
    st.lists(
        st.sampled_from(["Ruth is here. ", "It is old. ", "'a' ", "word ", '"Where?" ', "z. B. ", "x" * 300]),
        max_size=80,
    )
)
def test_a_long_text_is_split_in_windows_like_a_short_one(parts):
    """Every end of a sentence that is far from the end of a window is found."""
    text = "".join(parts) * (1 + WINDOW // max(1, len("".join(parts)))) if parts else ""
    spans = split(text)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    assert all(a < b <= c < d for (a, b), (c, d) in pairwise(spans))


def test_windows_do_not_cut_sentences():
    sentence = "The Kestrel, which Jonas Vael sails, was built in 1987 at the old yard. "
    assert len(split(sentence * 500)) == 500


def test_it_is_cut_at_clauses_where_there_are_any():
    text = "one two three; four five six, seven eight nine"
    assert [text[a:b] for a, b in pieces(text, 0, len(text), 20)] == [
        "one two three;",
        "four five six,",
        "seven eight nine",
    ]


@given(st.text())
def test_a_clean_text_is_one_an_agent_could_send(text):
    cleaned = clean(text)
    assert cleaned == clean(cleaned)
    if any(c.isalnum() for c in cleaned) and len(cleaned) <= MOST_TEXT:
        add = tools.parse("add", {"text": cleaned}, "curator")
        assert isinstance(add, Add) and add.text == cleaned
