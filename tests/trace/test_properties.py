"""Random action sequences of every kind, valid and invalid, with commits and rollbacks between them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fixtures import ACTIONS, ROLES, Live, check_invariants, check_search, engine_of, lines, records, step

from kbgym.gym.actions import Deleted, Error, Merged
from kbgym.gym.environment import Environment
from kbgym.store import Store
from kbgym.trace.folder import StoreFolder
from kbgym.trace.history import diff

MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("act"), ACTIONS, ROLES),
        st.tuples(st.just("act"), ACTIONS, ROLES),
        st.tuples(st.just("act"), ACTIONS, ROLES),
        st.tuples(st.just("commit")),
        st.tuples(st.just("rollback"), st.integers(0, 100)),
    ),
    max_size=40,
)


@settings(max_examples=250)
@given(MOVES)
def test_replay_equals_the_live_store_at_every_iteration(moves: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        live = Live(Path(name))
        for move in moves:
            if move[0] == "act":
                before = live.store.fingerprint
                done = live.act(move[1], move[2])
                if isinstance(done.result, Error):
                    assert live.store.fingerprint == before, "an error changed the store"
                check_invariants(live.store)
            elif move[0] == "commit":
                live.commit()
            elif live.iteration:
                live.rollback(move[1] % (live.iteration + 1))
        live.commit()
        check_search(live.environment)
        live.close()

        folder = StoreFolder(Path(name))
        assert folder.reading is not None and folder.reading.dropped is None
        for iteration, state in live.states.items():
            replayed = folder.store(iteration)
            assert list(replayed) == state
            assert lines(list(replayed)) == lines(state)
            assert not any(msgspec.structs.astuple(diff(replayed, Store(state))))
            check_invariants(replayed)
        last = folder.store()
        assert last.fingerprint == live.store.fingerprint
        assert (last.merges, last.origins) == (live.store.merges, live.store.origins)
        assert last.add("A new one.") == live.store.add("A new one."), "replay and live give out the same next id"


@settings(max_examples=60)
@given(MOVES)
def test_an_id_is_never_given_out_twice(moves: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        live = Live(Path(name))
        seen = {record.id for record in live.store}
        for move in moves:
            if move[0] == "act":
                result = live.act(move[1], move[2]).result
                if (id := getattr(result, "id", None)) and type(result).__name__ == "Added":
                    assert id not in seen
                    seen.add(id)
            elif move[0] == "commit":
                live.commit()
            elif live.iteration and not live.pending:
                live.rollback(move[1] % (live.iteration + 1))
        live.close()


@settings(max_examples=80)
@given(st.lists(st.tuples(ACTIONS, ROLES), max_size=25))
def test_what_is_deleted_or_folded_away_is_never_found_again(actions: list[tuple[object, ...]]) -> None:
    store = Store(records())
    environment = Environment(store, engine_of(store))
    for action, role in actions:
        result = step(environment, action, role).result
        gone = result.id if isinstance(result, Deleted) else result.gone if isinstance(result, Merged) else None
        if gone is not None:
            assert gone not in store
            assert gone not in {id for id, _ in environment.engine.search("anything", 0, 1000)}
            assert all(gone not in record.links for record in store)
        check_search(environment)


@settings(max_examples=60)
@given(st.lists(st.tuples(ACTIONS, ROLES), max_size=25))
def test_a_frozen_store_never_changes(actions: list[tuple[object, ...]]) -> None:
    store = Store(records()).freeze()
    environment = Environment(store, engine_of(store))
    before, fingerprint = list(store), store.fingerprint
    for action, role in actions:
        step(environment, action, role)
    assert list(store) == before and store.fingerprint == fingerprint
    check_search(environment)


@settings(max_examples=60)
@given(st.lists(ACTIONS, max_size=20), st.lists(ACTIONS, max_size=20))
def test_a_copy_is_independent(first: list[object], second: list[object]) -> None:
    store = Store(records())
    environment = Environment(store, engine_of(store))
    for action in first:
        step(environment, action)
    twin = store.copy()
    before = list(twin)
    assert before == list(store) and twin.fingerprint == store.fingerprint
    for action in second:
        step(environment, action)
    assert list(twin) == before
    check_invariants(twin)
