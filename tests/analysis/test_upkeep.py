"""Indexes go stale when a round of updates changes the facts, and upkeep says by how much."""

from __future__ import annotations

import pytest

from kbgym.analysis.health import round_event, upkeep
from kbgym.baselines import build_arm
from kbgym.store import Store
from kbgym.trace.replay import follow_import
from kbgym.worlds.people3 import Dials, generate
from kbgym.worlds.splits import Sizes
from kbgym.worlds.updates import updated, updates
from kbgym.worlds.world import World


@pytest.fixture(scope="module")
def world() -> World:
    return generate(80, 2, Sizes(0, 0, 0, 0, 0), Dials(breadth=5))


def after(world: World, rounds: int) -> Store:
    """The oracle's store of the beginning, with the documents of later rounds."""
    store = build_arm("oracle", world).store
    for update in updates(world)[:rounds]:
        follow_import(store, round_event(update, update.round))
    return store


def test_indexes_lose_precision_and_recall_with_every_round(world):
    scores = [upkeep(after(world, rounds), world, rounds) for rounds in range(3)]
    assert scores[0].stale == 0 and scores[0].precision == scores[0].recall == 1.0
    assert scores[0].precision > scores[1].precision > scores[2].precision
    assert scores[0].recall > scores[1].recall > scores[2].recall
    assert 0 < scores[1].stale < scores[2].stale < scores[2].links


def test_indexes_made_anew_are_whole_again(world):
    fresh = build_arm("oracle", updated(world, 2)).store
    score = upkeep(fresh, world, 2, actions=9)
    assert score.precision == score.recall == 1.0 and score.actions == 9


def test_a_round_is_an_event_that_adds_its_documents(world):
    (update, _) = updates(world)
    store = after(world, 1)
    assert all(store[document.id].text == document.text for document in update.documents)
    assert set(update.superseded) <= {document.id for document in world.documents}
