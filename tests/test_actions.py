"""The documents that a result changed and those that it shows; the cost of an agenda task."""

from __future__ import annotations

import pytest

from kbgym.gym.actions import (
    Added,
    Corrected,
    Deleted,
    Edited,
    Error,
    Finished,
    Found,
    Learnt,
    Linked,
    Merged,
    Opened,
    Result,
    Unlinked,
    changed_in,
    shown_by,
)
from kbgym.gym.policy import IndexTask, Lookup, PlannedCurator
from kbgym.gym.tools import MOST_TARGETS


@pytest.mark.parametrize(
    ("result", "changed", "shown"),
    [
        (Found(("a", "b"), 1), (), ("a", "b")),
        (Found(("a",), 1, (Learnt("i", ("a", "c"), 3),)), (), ("a", "i", "c")),
        (Opened("a", ("b", "c"), near=("c", "d")), (), ("a", "b", "c", "d")),
        (Added("a"), ("a",), ("a",)),
        (Edited("a"), ("a",), ("a",)),
        (Corrected("a", ("b",)), ("a",), ("a",)),
        (Merged("a"), ("a",), ("a",)),
        (Merged("a", "b"), ("a", "b"), ("a",)),
        (Deleted("a"), ("a",), ()),
        (Linked("a", ("b",)), ("a",), ()),
        (Unlinked("a", "b"), ("a",), ()),
        (Finished(), (), ()),
        (Error("no"), (), ()),
    ],
)
def test_documents_of_a_result(result: Result, changed: tuple[str, ...], shown: tuple[str, ...]) -> None:
    assert changed_in(result) == changed and shown_by(result) == shown


@pytest.mark.parametrize(
    ("searches", "known", "index", "cost"),
    [(0, 0, "n1", 1), (0, 0, None, 2), (2, 1, "n1", 3), (1, MOST_TARGETS, None, 3), (1, MOST_TARGETS + 1, None, 4)],
)
def test_cost_of_an_index_task(searches: int, known: int, index: str | None, cost: int) -> None:
    documents, lookups = tuple((f"d{n}", "Text.") for n in range(known)), (Lookup("bakers"),) * searches
    assert IndexTask("job", "baker", "named", documents, lookups, index).cost == cost


def test_an_index_is_linked_in_batches_as_far_as_the_budget_allows():
    members, curator = [f"d{n}" for n in range(2 * MOST_TARGETS + 1)], PlannedCurator()
    curator.remaining = 5
    batches = [action.targets for action in curator._link("n1", members)]
    assert [len(batch) for batch in batches] == [MOST_TARGETS, MOST_TARGETS, 1]
    assert [id for batch in batches for id in batch] == members
    curator.remaining = 1
    assert list(curator._link("n1", members)) == []
    assert Linked("n1").itself is False
