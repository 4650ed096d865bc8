"""Terms: what is written differently and means the same is one term, and what only looks alike is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.search.terms import terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foo_bar", ["foobar", "foo", "bar"]),
        ("FooBar", ["foobar", "foo", "bar"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("2014-04-30", ["2014-04-30", "2014", "04", "30"]),
        ("2014/04/30,", ["2014-04-30", "2014", "04", "30"]),
        ("(RFC 1102)", ["rfc", "1102", "rfc1102"]),
        ("RFC-1102", ["rfc1102", "rfc", "1102"]),
        ("RFC1102", ["rfc1102", "rfc", "1102"]),
        ("version 1.23", ["version", "1-23", "1", "23"]),
        ("1,234,567 boats", ["1234567", "boat"]),
        ("Müller’s cities", ["muller", "city"]),
        ("U.S. and US", ["us", "u", "s", "us"]),
        ("Straße", ["strasse"]),
        ("東京都 です", ["東京", "京都", "です"]),
        ("दिल्ली में", ["दिल्ली", "में"]),
        ("Who is the", ["who", "is", "the"]),  # nothing but small words: better than nothing
        ("Who is Ann?", ["ann"]),
        ("… — !", []),
        ("", []),
    ],
)
def test_what_a_text_is_looked_up_by(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_what_looks_alike_stays_apart() -> None:
    assert "123" not in terms("1.23") and "20140430" not in terms("2014-04-30")


@pytest.mark.parametrize("character", ["a", "-", "a-", "A1", "1,", "'", "’s", "é", "東", "."])
def test_long_runs_cost_no_more_than_their_length(character: str) -> None:
    """No time is measured: the test checks that a long run of characters is not joined into one term."""
    found = terms(character * 50_000)
    assert max(map(len, found), default=0) <= 50_000 * len(character)
    assert sum(map(len, found)) <= 4 * 50_000 * len(character)


@given(st.text(max_size=60))
def test_terms_hold_no_space_and_are_the_same_again(text: str) -> None:
    found = terms(text)
    assert all(term and not any(character.isspace() for character in term) for term in found)
    assert terms(text) == found
