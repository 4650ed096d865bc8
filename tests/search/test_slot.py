"""The reserved slot against a brute-force definition, through edits, overlays, replay and staged passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgym.canonical import write_lines
from kbgym.gym.actions import (
    Action,
    Add,
    Delete,
    Edit,
    Error,
    Found,
    Learnt,
    Link,
    LinkMany,
    Observation,
    Search,
    Unlink,
    shown_by,
)
from kbgym.gym.calibration import MARGIN, calibrate
from kbgym.gym.environment import MEMBERS, SLOT_THRESHOLD, Environment, Nearest, apply
from kbgym.gym.observations import OBSERVATIONS, Observations, render
from kbgym.search.base import SEARCHES, SearchKind
from kbgym.search.embed import CachedEmbedder, HashEmbedder
from kbgym.search.engine import Engine
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.store import Record, Store, source
from kbgym.trace.events import TUNED, Acted, Committed, Genesis, Noted, RolledBack, committed
from kbgym.trace.folder import RECORDS
from kbgym.trace.live import LiveStore, snapshot_of
from kbgym.trace.replay import replay

WORDS = "tailor baker Mara Odo Fenn Eastmere lives near the old mill by Lund".split()
texts = st.lists(st.sampled_from(WORDS), min_size=2, max_size=6).map(" ".join)
queries = ("Mara the baker", "old mill by Lund", "zebra")
EMBEDDER = CachedEmbedder(HashEmbedder())


def initial() -> Store:
    return Store([source(f"s{n}", f"{WORDS[n % 7]} {WORDS[n % 11]} {WORDS[n % 5]} number {n}") for n in range(12)])


def brute_force(store: Store, kind: SearchKind, query: str, page: int) -> Nearest:
    """The slot by definition: a new search of all but the indexes, and the best index where it scores enough."""
    indexes = {record.id: record.text for record in store if record.flag == "authored" and record.links}
    plain = engine_for([(r.id, r.text) for r in store if r.id not in indexes], EMBEDDER, search=kind)
    ids = tuple(id for id, _ in plain.search(query, 5 * (page - 1), 5))
    if page > 1 or not indexes:
        return Nearest(ids)
    if kind == "words":
        words = engine_for(indexes.items(), EMBEDDER, search="words").words
        assert words is not None
        scored = dict(words.shares(query, len(indexes)))
    else:
        vectors = EMBEDDER.embed([query, *indexes.values()]).astype(float)
        scored = dict(zip(indexes, (vectors[1:] @ vectors[0]).tolist(), strict=True))
    best = min(scored, key=lambda id: (-round(scored[id], 9), id), default="")
    if not best or scored[best] < SLOT_THRESHOLD:
        return Nearest(ids)
    links = store[best].links
    return Nearest(ids, (Learnt(best, links[:MEMBERS], len(links)),))


@st.composite
def actions(draw: st.DrawFn) -> list[Action]:
    ids = [f"s{n}" for n in range(12)] + [f"n{n}" for n in range(1, 7)]
    one = st.sampled_from(ids)
    return draw(
        st.lists(
            st.one_of(
                st.builds(Add, texts),
                st.builds(Edit, one, texts),
                st.builds(Delete, one),
                st.builds(Link, one, one),
                st.builds(LinkMany, one, st.lists(one, min_size=1, max_size=8).map(tuple)),
                st.builds(Unlink, one, one),
            ),
            min_size=4,
            max_size=14,
        )
    )


def same_as_brute_force(environment: Environment, kind: SearchKind) -> None:
    for query in queries:
        for page in (1, 2):
            expected = brute_force(environment.store, kind, query, page)
            got = Nearest(tuple(environment.page(query, page)), environment.learnt(query) if page == 1 else ())
            assert got == expected


@pytest.mark.parametrize("kind", SEARCHES)
@given(actions())
@settings(max_examples=25)
def test_slot_equals_its_definition_after_any_edits(kind: SearchKind, made: list[Action]) -> None:
    async def check() -> None:
        store = initial()
        environment = Environment(store, engine_for(store, EMBEDDER, search=kind), ranking="slot")
        for action in [Add("Mara tailor"), Add("old mill"), LinkMany("n1", ("s1", "s2")), *made]:
            await environment.step(action, "curator")
        same_as_brute_force(environment, kind)
        other = Environment(store, engine_for(store, EMBEDDER, search=kind), ranking="slot")
        same_as_brute_force(other, kind)
        other.sync_to(initial())
        same_as_brute_force(other, kind)

    asyncio.run(check())


@pytest.mark.parametrize("kind", SEARCHES)
@given(actions(), actions())
@settings(max_examples=15)
def test_overlay_and_live_store_have_slots_of_their_own(
    kind: SearchKind, first: list[Action], later: list[Action]
) -> None:
    async def check() -> None:
        store = initial()
        engine = live_engine_for(store, CachedEmbedder(HashEmbedder()), search=kind)
        try:
            live = Environment(store, engine, ranking="slot")
            for action in [Add("Mara tailor"), Link("n1", "s1"), *first]:
                await live.step(action, "curator")
            before = snapshot_of(live, 1)
            staged = Environment(store.copy(), engine.overlay(), ranking="slot")
            for number, action in enumerate(later):
                await (live if number % 2 else staged).step(action, "curator")
            await engine.prepare(queries)
            for environment in (live, staged, before.environment()):
                same_as_brute_force(environment, kind)
        finally:
            engine.embedding.close()

    asyncio.run(check())


def trained(*links: str, text: str = "Mara the baker", observations: Observations = "paper") -> Environment:
    store = Store([*initial(), Record("n1", text, links, flag="authored")])
    return Environment(store, engine_for(store, EMBEDDER), ranking="slot", observations=observations)


def step(environment: Environment, action: Action) -> tuple[Found, Observation]:
    made = asyncio.run(environment.step(action, "reader"))
    assert isinstance(made.result, Found)
    return made.result, made.observation


@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_slot_shows_members_once_and_says_how_many_more(kind: Observations) -> None:
    environment = trained(*(f"s{n}" for n in range(8)), observations=kind)
    result, seen = step(environment, Search("Mara the baker"))
    assert result.learnt == (Learnt("n1", tuple(f"s{n}" for n in range(5)), 8),)
    shown = [document.id for document in seen.documents]
    assert shown == list(shown_by(result)) and len(set(shown)) == len(shown)
    assert {"n1", *result.ids, *result.learnt[0].targets} == set(shown)
    for id in shown:
        assert seen.text.count(environment.store[id].text) == 1, id
    page, slot = seen.text.split("Learnt from a question like this ([n1]")
    assert "And 3 more: read [n1]." in slot
    assert all(f"[{id}]" in page for id in result.ids)
    above = ", ".join(f"[{id}]" for id in result.learnt[0].targets if id in result.ids)
    assert slot.count("Already above") == bool(above) and (not above or f"Already above: {above}." in slot)


@pytest.mark.parametrize(("target", "repeated"), [("a", "\nAlready above: [a]."), ("b", "\n[b] B.")])
def test_slot_names_only_documents_that_are_on_the_page(target: str, repeated: str) -> None:
    texts = {"a": "A.", "b": "B.", "n1": "Both."}
    shown = render(Found(("a",), 1, (Learnt("n1", (target,), 1),)), texts.__getitem__)
    assert shown == f"[a] A.\nLearnt from a question like this ([n1] Both.):{repeated}"


def test_slot_is_on_the_first_page_only_and_empty_for_a_weak_match() -> None:
    environment = trained("s1")
    assert step(environment, Search("Mara the baker", 2))[0].learnt == ()
    assert step(environment, Search("zebra"))[0].learnt == ()
    environment.store.tune({"slot_threshold": 1.1})
    assert step(environment, Search("Mara the baker"))[0].learnt == ()
    environment.store.tune({"slot_threshold": -1.0})
    assert step(environment, Search("zebra"))[0].learnt


def test_long_members_are_shown_as_far_as_the_slot_goes() -> None:
    records = [source(f"s{n}", f"{n} " + "long text " * 90) for n in range(6)]
    store = Store([*records, Record("n1", "Mara the baker", tuple(one.id for one in records), flag="authored")])
    result, seen = step(Environment(store, engine_for(store, EMBEDDER), ranking="slot"), Search("Mara the baker"))
    assert result.learnt == (Learnt("n1", ("s0", "s1"), 6),)
    assert "And 4 more: read [n1]." in seen.text


def test_two_slots_show_two_indexes() -> None:
    store = Store([*initial(), *(Record(f"n{n}", f"Mara the baker {n}", ("s1",), flag="authored") for n in (1, 2, 3))])
    store.tune({"slots": 2})
    environment = Environment(store, engine_for(store, EMBEDDER), ranking="slot")
    assert len(step(environment, Search("Mara the baker"))[0].learnt) == 2


def test_another_ranking_on_the_same_engine_sees_indexes_as_documents() -> None:
    environment = trained("s1")
    plain = Environment(environment.store, environment.engine)
    assert plain.page("Mara the baker", 1)[0] == "n1" and plain.learnt("Mara the baker") == ()


def test_guard_finds_near_duplicates_among_indexes() -> None:
    environment = trained("s1", text="Everybody who is a baker in Lund")
    hits = environment.engine.nearest("Everybody who is a baker in Lund", 3)
    assert hits[0][0] == "n1"
    assert environment.engine.nearest("Everybody who is a baker in Lund", 3, ("n1",))[0][0] != "n1"


def test_replay_checks_the_slot_and_keeps_tuned_settings_through_rollback() -> None:
    store, events = initial(), []
    events.append(Genesis(1, len(store), store.fingerprint, settings={"slots": 2, "questions": 3}))
    for number, data in enumerate(({"slot_threshold": 0.7}, {"slot_threshold": 0.2}), 1):
        events += [Noted(number, TUNED, data), committed(number, 0, store)]
    assert replay(initial, events).tuned == {"slots": 2, "slot_threshold": 0.2}
    events += [RolledBack(3, 1), Committed(3, 0, store.fingerprint, len(store), 0)]
    assert replay(initial, events).tuned == {"slots": 2, "slot_threshold": 0.7}


def test_result_that_names_other_members_than_the_store_is_damage() -> None:
    store = Store([*initial(), Record("n1", "Mara", ("s1", "s2"), flag="authored")])
    for wrong in (Learnt("n1", ("s1", "s2"), 3), Learnt("n1", ("s4",), 2), Learnt("s1", (), 2), Learnt("n9", (), 0)):
        assert isinstance(apply(store, Search("Mara"), Nearest(("s3",), (wrong,))), Error)
    learnt = (Learnt("n1", ("s1",), 2),)
    result = apply(store, Search("Mara"), Nearest(("s3",), learnt))
    assert result == Found(("s3",), 1, learnt)
    decoded = msgspec.json.decode(msgspec.json.encode(Acted(1, "forward", 1, Search("Mara"), result)), type=Acted)
    assert decoded.result == result


def test_live_store_resumes_with_its_slot(tmp_path: Path) -> None:
    write_lines(tmp_path / RECORDS, initial())

    def engine(store: Store) -> Engine:
        return engine_for(store, EMBEDDER)

    async def work(do: Callable[[LiveStore], object]) -> list[Found]:
        live = LiveStore(tmp_path, engine, ranking="slot")
        found: list[Found] = []
        try:
            async with live.write():
                do(live)
                for action in _SESSION:
                    made = await live.environment.step(action, "curator")
                    live.record(Acted(live.iteration + 1, "backward", 1, made.action, made.result, made.verdict))
                    found += [made.result] if isinstance(made.result, Found) else []
                live.commit()
        finally:
            await live.close()
        return found

    def tune(live: LiveStore) -> None:
        live.store.tune({"slot_threshold": 0.1})
        live.record(Noted(live.iteration + 1, TUNED, {"slot_threshold": 0.1}))

    first = asyncio.run(work(tune))
    second = asyncio.run(work(lambda live: live.store.tuned == {"slot_threshold": 0.1} or pytest.fail("not tuned")))
    assert first[-1].learnt and second[-1].learnt


_SESSION: Sequence[Action] = (Add("Mara the baker of Lund"), Link("n1", "s1"), Search("the baker Mara"))


def test_calibration_keeps_right_slots_and_drops_wrong_ones() -> None:
    store = Store(
        [
            *(source(f"s{n}", f"{WORDS[n % 7]} {WORDS[n % 11]} number {n}") for n in range(40)),
            source("a", "unrelated fact alpha"),
            source("b", "unrelated fact beta"),
            Record("n1", "who bakes bread in the harbour of Fenn", ("a",), flag="authored"),
            Record("n2", "mill wheel repairs", ("b",), flag="authored"),
        ]
    )
    environment = Environment(store, engine_for(store, EMBEDDER), ranking="slot")
    right = ("who bakes the bread in Fenn harbour", ("a",))
    wrong = [("old mill by Lund number 3", ("s3",)), ("mill wheel repairs", ("b",))]
    threshold = calibrate(environment, [right, *wrong])
    trained = environment.engine.trained
    assert trained is not None
    (score,) = (score for id, score in trained.match(right[0], 2) if id == "n1")
    assert threshold == round(score - MARGIN, 4)
    strict = calibrate(environment, wrong)  # the question's own index tells nothing
    assert strict is not None and all(trained.match(text, 2)[1][1] < strict for text, _ in wrong)
    assert calibrate(environment, [(f"{text}?", support) for text, support in wrong]) == strict, "as it is asked"
    assert calibrate(environment, [("no evidence is known", ())]) is None


def test_calibration_takes_equal_scores_together() -> None:
    store = Store(
        [
            *(source(f"s{n}", f"{WORDS[n % 7]} number {n}") for n in range(9)),
            Record("n1", "who bakes bread in the harbour of Fenn", ("s1",), flag="authored"),
        ]
    )
    environment = Environment(store, engine_for(store, EMBEDDER), ranking="slot")
    text, trained = "who bakes the bread in Fenn harbour", environment.engine.trained
    assert trained is not None
    score = trained.match(text, 1)[0][1]
    right, wrong = (text, ("s1",)), (text, ("s2",))
    assert calibrate(environment, [right, *[wrong] * 9]) == round(score - MARGIN, 4)
    assert calibrate(environment, [right, *[wrong] * 11]) == round(score + MARGIN, 4)


def test_a_right_slot_is_worth_its_place_where_its_evidence_is_on_the_page() -> None:
    originals = [source(f"s{n}", f"{WORDS[n % 7]} {WORDS[n % 11]} number {n}") for n in range(40)]
    flat = Store(originals)
    text = "old mill by Lund number 3"
    first = Environment(flat, engine_for(flat, EMBEDDER), ranking="slot").page(text, 1)[0]
    store = Store([*originals, Record("n1", "the old mill by Lund", (first,), flag="authored")])
    environment = Environment(store, engine_for(store, EMBEDDER), ranking="slot")
    assert environment.engine.trained is not None
    ((_, score),) = environment.engine.trained.match(text, 1)
    assert first in environment.page(text, 1)[:5] and calibrate(environment, [(text, (first,))]) == round(
        score - MARGIN, 4
    )
