"""The live store itself: turns, commits, what is told to whom, and what is left when a write fails.

Where others may write too, `shared_place.py` stands for the database.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from live_stores import NoSearch, live_store
from shared_place import URL, SharedPlace, full_disk
from store_fixtures import engine_of, records

from kbgym.backends.postgres import live as database
from kbgym.errors import BadInput, Failed
from kbgym.gym.actions import Action, Add, Delete, Edit, Observation, Result
from kbgym.gym.environment import Environment
from kbgym.store import Store
from kbgym.trace import live as module
from kbgym.trace.backend import save_store
from kbgym.trace.events import Acted, Began, Committed, Event, Genesis, RolledBack
from kbgym.trace.folder import StoreFolder
from kbgym.trace.live import LiveStore
from kbgym.trace.log import TraceWriter


class Ear:
    """Remembers what it was told, and how often it had to begin again."""

    def __init__(self) -> None:
        self.heard: list[tuple[Event, str, str]] = []
        self.cleared = 0

    def __call__(self, event: Event, store: Store, observation: Observation) -> None:
        self.heard.append((event, store.fingerprint, observation.text))

    def clear(self) -> None:
        self.heard = []
        self.cleared += 1

    @property
    def events(self) -> list[Event]:
        return [event for event, _, _ in self.heard]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_store(Store(records()), str(tmp_path / "s"))
    return tmp_path / "s"


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> SharedPlace:
    place = SharedPlace(records())
    monkeypatch.setattr(module, "open_backend", place.open)
    monkeypatch.setattr(database, "open_backend", place.open)
    monkeypatch.setattr(database, "store_at", place.store_at)
    return place


def search_of(live: LiveStore) -> list[str]:
    return sorted(id for id, _ in live.environment.engine.search("Lund", 0, 100))


@asynccontextmanager
async def opened(where: Path | str, *ears: Ear, **options: Any) -> AsyncIterator[LiveStore]:
    live = LiveStore(where, engine_of, ears, **options)
    try:
        yield live
    finally:
        await live.close()


async def do(live: LiveStore, *actions: Action, commit: bool = True) -> list[Result]:
    """One turn in which actions are carried out and recorded; the results, once they are durable."""
    results = []
    async with live.write():
        for action in actions:
            step = await live.environment.carry_out(action)
            acted = Acted(live.iteration + 1, "serve", len(results) + 1, step.action, step.result, step.verdict)
            live.record(acted, step.observation)
            results.append(step.result)
        if commit:
            live.commit()
    await live.durable()
    return results


# -- a folder ---------------------------------------------------------------------------------------------------------


def test_listeners_hear_the_same_live_and_replayed(folder: Path) -> None:
    async def work() -> None:
        first, second = Ear(), Ear()
        async with opened(folder, first, embedder="hash", settings={"seed": 1}) as live:
            await do(live, Add("Readers of Ibsen."), Edit("d0", "Anna Berg lives in Malmö."))
            await do(live, Delete("d1"))
            kept = first.heard
        assert [type(event) for event, _, _ in kept] == [Acted, Acted, Committed, Acted, Committed]
        assert kept[0][2] == "Added.\n[n3] Readers of Ibsen." and kept[2][2] == ""
        async with opened(folder, second) as again:
            assert [row for row in second.heard if not isinstance(row[0], Genesis)] == kept
            assert (again.iteration, again.initial.fingerprint) == (2, Store(records()).fingerprint)
        genesis = StoreFolder(folder).genesis
        assert genesis is not None and (genesis.embedder, genesis.settings) == ("hash", {"seed": 1})

    asyncio.run(work())


def test_each_commit_is_an_iteration_and_says_how_much_was_taught(folder: Path) -> None:
    async def work() -> None:
        taught = [5]
        async with opened(folder, position=lambda: taught[0]) as live:
            await do(live, Add("One."))
            taught[0] = 9
            await do(live, Add("Two."))
            assert (live.iteration, live.commits, live.flushes) == (2, 2, 2)
        async with opened(folder) as live:
            await do(live, Add("Three."))
            assert live.last is None
        commits = [event for event in StoreFolder(folder).events if isinstance(event, Committed)]
        assert [(event.iteration, event.position) for event in commits] == [(1, 5), (2, 9), (3, 9)]

    asyncio.run(work())


def test_turns_do_not_mix(folder: Path) -> None:
    """A turn that waits inside holds up the others, and a look waits too."""

    async def work() -> None:
        order: list[str] = []
        async with opened(folder) as live:

            async def turn(name: str) -> None:
                async with live.write():
                    order.append(f"{name} begins")
                    await asyncio.sleep(0)
                    order.append(f"{name} ends")

            async def look() -> None:
                async with live.read():
                    order.append("look")

            await asyncio.gather(turn("a"), turn("b"), look())
            assert order == ["a begins", "a ends", "b begins", "b ends", "look"]
            with pytest.raises(ZeroDivisionError):
                async with live.write():
                    raise ZeroDivisionError
            await do(live, Add("The lock was given back."))
            assert not live.shared

    asyncio.run(work())


def test_a_failed_write_returns_to_what_is_on_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything committed since is lost together, listeners begin again, and the next turn goes on from there."""

    async def work() -> None:
        ear = Ear()
        async with opened(folder, ear) as live:
            await do(live, Add("Kept."))
            before, told = live.store.fingerprint, list(ear.heard)

            def fail(writer: TraceWriter, events: Any) -> None:
                raise full_disk()

            monkeypatch.setattr(TraceWriter, "commit", fail)
            async with live.write():
                await live.environment.carry_out(Add("ConnectionLost."))
                one = live.commit()
                two = live.commit()
            for durable in (one, two):
                with pytest.raises(Failed):
                    await durable
            await live.durable()
            assert (live.store.fingerprint, live.iteration, live.last) == (before, 1, None)
            assert ear.cleared == 1 and ear.heard[-len(told) :] == told
            assert search_of(live) == sorted(record.id for record in live.store)
            monkeypatch.undo()
            assert await do(live, Add("Written after all.")) and live.iteration == 2
        assert StoreFolder(folder).store().fingerprint == live.store.fingerprint

    asyncio.run(work())


def test_a_turn_under_way_when_a_write_fails_can_commit_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with opened(folder) as live:
            real = TraceWriter.commit

            def fail(writer: TraceWriter, events: Any) -> None:
                raise full_disk()

            monkeypatch.setattr(TraceWriter, "commit", fail)
            async with live.write():
                await live.environment.carry_out(Add("ConnectionLost."))
                first = live.commit()
            async with live.write():
                with pytest.raises(Failed):
                    await first
                assert "n3" in live.store, "it is taken back when this turn ends"
                live.record(Began(2, "serve", "x"))
                with pytest.raises(Failed):
                    live.commit()
            assert "n3" not in live.store and live.iteration == 0
            monkeypatch.setattr(TraceWriter, "commit", real)
            await do(live, Add("Kept."))
        assert [type(e).__name__ for e in StoreFolder(folder).events] == ["Genesis", "Acted", "Committed"]

    asyncio.run(work())


def test_a_rollback_returns_to_what_is_being_written_and_to_what_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        ear = Ear()
        async with opened(folder, ear) as live:
            await do(live, Add("One."))
            kept = live.store.fingerprint
            written = live._writer.commit  # type: ignore[union-attr]
            monkeypatch.setattr(live._writer, "commit", lambda events: (time.sleep(0.1), written(events)))
            for text in ("Two.", "Three."):
                async with live.write():
                    step = await live.environment.carry_out(Add(text))
                    live.record(Acted(live.iteration + 1, "serve", 1, step.action, step.result), step.observation)
                    live.commit()
            now = live.store.fingerprint
            await asyncio.sleep(0)  # the write begins
            assert await live.roll_back(3, "again") == 4 and live.store.fingerprint == now
            assert await live.roll_back(1) == 5 and live.store.fingerprint == kept
            assert search_of(live) == sorted(record.id for record in live.store)
            assert [(e.iteration, e.to, e.reason) for e in ear.events if isinstance(e, RolledBack)] == [
                (4, 3, "again"),
                (5, 1, ""),
            ]
            assert live.store.add("Four.") == "n6", "ids are never issued again"
        assert StoreFolder(folder).store().fingerprint == kept

    asyncio.run(work())


def test_a_snapshot_is_shared_until_the_next_iteration(folder: Path) -> None:
    async def work() -> None:
        live = live_store(folder)
        first = live.snapshot()
        assert live.snapshot() is first and first.store.frozen and first.iteration == 0
        environment = first.environment()
        assert isinstance(environment, Environment) and environment.store is first.store
        await do(live, Add("New."))
        second = live.snapshot()
        assert second is not first and second.iteration == 1 and "n3" in second.store and "n3" not in first.store
        live.sync_to(first.store.copy())
        assert live.snapshot() is not second and "n3" not in live.snapshot().store
        await live.close()
        async with opened(folder, write=False) as plain:
            with pytest.raises(TypeError):
                plain.environment.engine.overlay()

    asyncio.run(work())


def test_whoever_only_looks_writes_nothing_and_follows_the_file(folder: Path) -> None:
    async def work() -> None:
        ear = Ear()
        async with opened(folder, ear, write=False) as looking:
            assert not (folder / "trace.jsonl").exists() and not looking.shared
            with pytest.raises(BadInput):
                async with looking.write():
                    pass
            async with opened(folder) as live:
                await do(live, Add("New."))
                async with looking.read():
                    assert looking.store.fingerprint == live.store.fingerprint and looking.iteration == 1
                    assert search_of(looking) == search_of(live)
                told = ear.cleared
                async with looking.read():
                    assert ear.cleared == told, "what has not changed is not read again"
                assert [type(event).__name__ for event in ear.events] == ["Genesis", "Acted", "Committed"]

    asyncio.run(work())


def test_what_cannot_be_opened_leaves_no_lock_behind(folder: Path) -> None:
    def broken(store: Store) -> Any:
        raise RuntimeError("no search")

    with pytest.raises(RuntimeError):
        LiveStore(folder, broken)

    async def work() -> None:
        async with opened(folder) as live:
            await do(live, Add("New."))

    asyncio.run(work())


class Thinking:
    """A judge that has a neighbour turn up while it thinks, so often."""

    name = "thinking"

    def __init__(self, times: int) -> None:
        self.times, self.asked = times, 0
        self.live: LiveStore | None = None

    async def duplicate(self, candidate: str, existing: str) -> bool:
        self.asked += 1
        if self.asked <= self.times and self.live is not None:
            engine = self.live.environment.engine
            engine.hits.insert(0, (f"d{self.asked}", 0.99))  # type: ignore[attr-defined]
        return False


class Hits(NoSearch):
    def __init__(self) -> None:
        self.hits = [("d0", 0.95)]
        self.prepared: list[str] = []

    async def prepare(self, texts: Any) -> None:
        self.prepared += texts

    def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[tuple[str, float]]:
        return self.hits[:limit]


@pytest.mark.parametrize(("times", "asked"), [(0, 1), (1, 2), (2, 3), (9, 3)])
def test_the_judge_is_asked_before_the_turn_and_again_but_not_for_ever(folder: Path, times: int, asked: int) -> None:
    async def work() -> None:
        judge, hits = Thinking(times), Hits()
        live = LiveStore(folder, lambda store: hits, judge=judge)
        judge.live = live
        await live.prepare([Add("Something."), Delete("d0")])
        assert judge.asked == asked and hits.prepared == ["Something."]
        await live.close()
        plain = LiveStore(folder, lambda store: hits)
        await plain.prepare([Add("Other.")])
        assert hits.prepared == ["Something.", "Other."]
        await plain.close()

    asyncio.run(work())


# -- a shared place ---------------------------------------------------------------------------------------------------


def test_what_is_recorded_in_a_turn_is_written_when_it_ends(shared: SharedPlace) -> None:
    async def work() -> None:
        async with opened(URL) as live:
            async with live.write():
                await live.environment.carry_out(Add("New."))
                live.record(Began(1, "serve", "x"))
                assert len(shared.events) == 1
            assert [type(event).__name__ for event in shared.events] == ["Genesis", "Began", "Committed"]
            assert live.iteration == 1 and live.last is None and live.flushes == 1
            async with live.write():
                pass
            assert len(shared.events) == 3 and live.flushes == 1, "an empty turn writes nothing"
            with pytest.raises(RuntimeError):
                live.commit()
            async with live.write():
                live.commit()
                live.commit()
            assert live.iteration == 3 and live.flushes == 2

    # The store in the commit is checked by nobody here: the action was not recorded.
    asyncio.run(work())


def test_an_error_inside_a_turn_undoes_it(shared: SharedPlace) -> None:
    async def work() -> None:
        ear = Ear()
        async with opened(URL, ear) as live, opened(URL) as other:
            before = live.store.fingerprint
            with pytest.raises(ZeroDivisionError):
                async with live.write():
                    step = await live.environment.carry_out(Add("ConnectionLost."))
                    live.record(Acted(1, "serve", 1, step.action, step.result))
                    lost = live.commit()
                    raise ZeroDivisionError
            with pytest.raises(Failed):
                await lost
            assert len(shared.events) == 1 and (live.store.fingerprint, live.iteration) == (before, 0)
            assert ear.cleared == 1 and search_of(live) == sorted(record.id for record in live.store)
            cleared = ear.cleared
            with pytest.raises(ZeroDivisionError):
                async with live.write():
                    raise ZeroDivisionError
            assert ear.cleared == cleared, "nothing was recorded, so nothing is read again"
            await do(other, Add("The turn was given back."))
            await do(live, Add("And again."))
            assert live.iteration == 2

    asyncio.run(work())


def test_turns_that_wait_in_one_process_are_had_in_one_turn_of_the_database(shared: SharedPlace) -> None:
    """Also where one of them fails half way: what the others did is kept, what it did is not."""

    async def one(live: LiveStore, number: int) -> None:
        async with live.write():
            step = await live.environment.carry_out(Add(f"Sentence {number}."))
            live.record(Acted(live.iteration + 1, "serve", 1, step.action, step.result, step.verdict))
            await asyncio.sleep(0)
            if number == 2:
                raise ZeroDivisionError

    async def work() -> None:
        async with opened(URL) as live:
            said = await asyncio.gather(*(one(live, number) for number in range(6)), return_exceptions=True)
            assert [type(error) for error in said if error] == [ZeroDivisionError] and said[2] is not None
            assert live.commits == 5 and live.flushes < 5
            there = Store(shared.open().store())
            assert live.store.fingerprint == there.fingerprint
            texts = [record.text for record in there]
            assert [f"Sentence {number}." in texts for number in range(6)] == [True, True, False, True, True, True]

    asyncio.run(work())


def test_whoever_gives_up_waiting_for_a_turn_keeps_nobody_out(shared: SharedPlace) -> None:
    async def work() -> None:
        async with opened(URL) as one, opened(URL) as other:

            async def waiting() -> None:
                async with other.write():
                    raise AssertionError("it was not its turn")

            async with one.write():
                task = asyncio.create_task(waiting())
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            async with asyncio.timeout(10):
                await do(one, Add("One."))
                await do(other, Add("Other."))
            assert other.iteration == 2 and not shared.turn.locked()

    asyncio.run(work())


def test_whoever_goes_away_at_the_end_of_a_turn_leaves_it_whole(shared: SharedPlace) -> None:
    async def work() -> None:
        async with opened(URL) as live:
            task = asyncio.create_task(do(live, Add("Written.")))
            while not live.commits:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(10), live.write():
                pass
            assert len(shared.events) == 3 and not shared.turn.locked()

    asyncio.run(work())


def test_closing_lets_go_of_the_writer(shared: SharedPlace, folder: Path) -> None:
    async def work() -> None:
        async with opened(URL) as live:
            writer: Any = live._writer
            assert not writer.closed
        assert writer.closed
        with pytest.raises(RuntimeError):
            live._thread.submit(print)

    asyncio.run(work())


def test_news_that_came_for_somebody_who_went_away_are_not_lost(shared: SharedPlace) -> None:
    async def work() -> None:
        async with opened(URL) as one, opened(URL) as other:

            async def looking() -> None:
                async with other.read():
                    pass

            for number in range(20):
                await do(one, Add(f"Fact number {number}."))
                task = asyncio.create_task(looking())
                await asyncio.sleep(0.001 * (number % 3))
                task.cancel()
                await asyncio.wait([task])
            async with other.read():
                assert other.iteration == 20 and other.store.fingerprint == one.store.fingerprint

    asyncio.run(work())
