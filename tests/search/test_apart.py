"""Pages in which some documents are set apart: nothing twice, nothing lost, and nobody pushed out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbgym.search.ranking import page_apart, whole_ranking

rankings = st.lists(st.booleans(), max_size=60)


def pages(apart: list[bool], size: int, most: int) -> list[list[str]]:
    """Every page up to the first empty one."""
    ranked = [str(number) for number in range(len(apart))]
    found: list[list[str]] = []
    while page := page_apart(ranked, lambda id: apart[int(id)], len(found) + 1, size, most):
        found.append(page)
    return found


@given(rankings, st.integers(1, 6), st.integers(1, 6))
def test_every_document_stands_on_exactly_one_page(apart, size, most):
    shown = [id for page in pages(apart, size, most) for id in page]
    assert sorted(shown, key=int) == [str(number) for number in range(len(apart))]


@given(rankings, st.integers(1, 6), st.integers(1, 6))
def test_plain_documents_stand_where_they_would_if_nothing_were_set_apart(apart, size, most):
    plain = [str(number) for number, is_apart in enumerate(apart) if not is_apart]
    expected = [plain[start : start + size] for start in range(0, len(plain), size)]
    found = [[id for id in page if not apart[int(id)]] for page in pages(apart, size, most)]
    assert found[: len(expected)] == expected and not any(found[len(expected) :])


@given(rankings, st.integers(1, 6), st.integers(1, 6))
def test_a_page_is_in_order_and_holds_few_that_are_set_apart(apart, size, most):
    for page in pages(apart, size, most):
        assert page == sorted(page, key=int)
        assert sum(apart[int(id)] for id in page) <= most


@given(rankings, st.integers(1, 6))
def test_the_first_page_shows_all_that_it_would_show_otherwise(apart, size):
    first = (pages(apart, size, size) or [[]])[0]
    assert {str(number) for number in range(min(size, len(apart)))} <= set(first)


@given(st.integers(0, 400))
def test_a_ranking_is_fetched_whole_and_in_order(count):
    asked = []

    def search(offset: int, limit: int) -> list[tuple[str, float]]:
        asked.append((offset, limit))
        return [(str(number), 0.0) for number in range(offset, min(count, offset + limit))]

    assert list(whole_ranking(search)) == [str(number) for number in range(count)]
    assert [offset for offset, _ in asked] == sorted({offset for offset, _ in asked})
