"""Many clients at once: every document is a register, and all they saw has one order, which is the trace's.

The checker knows nothing of the store: it folds the trace into texts by itself, and then looks for a moment in that
order for every read, between its request and its reply. KBGYM_CONTENTION_SECONDS=300 has the clients work longer.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest
from live_stores import NoSearch
from postgres import Cluster

from kbgym.gym.actions import Action, Add, Added, Correct, Corrected, Delete, Deleted, Edit, Edited
from kbgym.serving.clients import ClientSession, act
from kbgym.store import Store, source
from kbgym.trace.backend import open_backend, save_store
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Imported, RolledBack
from kbgym.trace.live import LiveStore
from kbgym.trace.replay import follow_import
from kbgym.worlds.world import Document

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("KBGYM_CONTENTION_SECONDS", "20"))
FIRST = {f"d{number}": f"Document {number} at first." for number in range(6)}


class Op(NamedTuple):
    """One operation of a client: a read with its result, or a write with its text."""

    asked: float
    told: float
    kind: str
    id: str
    text: str | None


class Clients:
    """Eight clients of one or more live stores beside lessons, imports of files and rollbacks, until time is over.

    `following` are stores opened for reading only, which follow the others.
    """

    def __init__(self, lives: Sequence[LiveStore], following: Sequence[LiveStore]) -> None:
        self.lives, self.ops, self.ends = lives, list[Op](), time.monotonic() + SECONDS
        self.following = following
        self.ids = list(FIRST)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(self._editing(number))
            for live in self.following:
                group.create_task(self._reading(live))
            group.create_task(self._learning())
            group.create_task(self._importing())
            group.create_task(self._rolling_back())

    def _note(self, asked: float, kind: str, id: str, text: str | None) -> None:
        self.ops.append(Op(asked, time.monotonic(), kind, id, text))

    async def _write(self, live: LiveStore, session: ClientSession, action: Action, text: str | None) -> str:
        asked = time.monotonic()
        result = (await act(live, session, action, "curator")).step.result
        if isinstance(result, Added | Edited | Corrected | Deleted):
            self._note(asked, "delete" if isinstance(result, Deleted) else "write", result.id, text)
            return result.id
        return ""

    async def _editing(self, number: int) -> None:
        live, chance = self.lives[number % len(self.lives)], random.Random(number)
        session, count, mine = ClientSession(f"client {number}"), 0, list[str]()
        while time.monotonic() < self.ends:
            count += 1
            text, id, kind = f"Client {number} says {count}.", chance.choice(self.ids), chance.random()
            if kind < 0.5:
                await self._read(live, id, session)
            elif kind < 0.85:
                await self._write(live, session, Edit(id, text), text)
            elif kind < 0.93:
                made = await self._write(live, session, Add(text) if kind < 0.9 else Correct(text, (id,)), text)
                self.ids.extend(filter(None, [made]))
                mine.extend(filter(None, [made]))
            elif mine:
                await self._write(live, session, Delete(mine.pop()), None)
            await asyncio.sleep(0.002)

    async def _read(self, live: LiveStore, id: str, session: ClientSession | None = None) -> None:
        asked = time.monotonic()
        async with live.read():
            found = live.store[id].text if id in live.store else None
            if session is not None and found is not None:
                session.show(id, live.store)
        self._note(asked, "read", id, found)

    async def _reading(self, live: LiveStore) -> None:
        chance = random.Random(7)
        while time.monotonic() < self.ends:
            await self._read(live, chance.choice(self.ids))
            await asyncio.sleep(0.5)

    async def _importing(self) -> None:
        """Updates from files: one document changes and another is new, in one transaction."""
        live, chance, count = self.lives[-1], random.Random(5), 0
        while time.monotonic() < self.ends:
            count += 1
            edited = Document(chance.choice(list(FIRST)), f"File {count} as changed.")
            added, asked = Document(f"file{count}", f"File {count}, which is new."), time.monotonic()
            async with live.write():
                event = Imported(live.iteration + 1, edited=(edited,), added=(added,))
                follow_import(live.store, event)
                live.record(event)
                durable = live.commit()
            await durable
            for document in (edited, added):
                self._note(asked, "write", document.id, document.text)
            self.ids.append(added.id)
            await asyncio.sleep(0.3)

    async def _learning(self) -> None:
        """Lessons of two documents, both or none of which are there."""
        live, count = self.lives[0], 0
        while time.monotonic() < self.ends:
            count += 1
            texts, asked = [f"Lesson {count} taught {what}." for what in ("one", "two")], time.monotonic()
            await live.prepare([Add(text) for text in texts])
            ids = []
            async with live.write():
                number = live.iteration + 1
                live.record(Began(number, "backward", "learner"))
                for at, text in enumerate(texts, 1):
                    step = await live.environment.carry_out(Add(text))
                    live.record(Acted(number, "backward", at, step.action, step.result, step.verdict), step.observation)
                    assert isinstance(step.result, Added)
                    ids.append(step.result.id)
                live.record(Ended(number, "backward", "done"))
                durable = live.commit()
            await durable
            for id, text in zip(ids, texts, strict=True):
                self._note(asked, "write", id, text)
            self.ids.append(ids[0])
            await asyncio.sleep(0.05)

    async def _rolling_back(self) -> None:
        live, chance = self.lives[-1], random.Random(99)
        while time.monotonic() < self.ends:
            await asyncio.sleep(0.5)
            asked = time.monotonic()
            number = await live.roll_back(max(0, live.iteration - chance.randint(1, 5)))
            self._note(asked, "rollback", str(number), None)


class History:
    """The texts after every commit of a trace, by a fold of its own."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.now = dict(FIRST)
        self.versions: dict[str, list[tuple[int, str | None]]] = {id: [(0, text)] for id, text in FIRST.items()}
        self.at: dict[tuple[str, str | None], list[int]] = {}  # the commits that wrote a text, or deleted a document
        self.size = 0
        states = {0: dict(self.now)}
        targets = {event.to for event in events if isinstance(event, RolledBack)}
        for event in events:
            match event:
                case Acted(
                    action=Add(text) | Edit(_, text) | Correct(text), result=Added(id) | Edited(id) | Corrected(id)
                ):
                    self._set(id, text)
                case Acted(result=Deleted(id)):
                    self._set(id, None)
                case Imported():
                    for document in (*event.edited, *event.added):
                        self._set(document.id, document.text)
                case RolledBack(iteration, to):
                    self.at.setdefault((str(iteration), None), []).append(self.size + 1)
                    then = states[to]
                    for id in self.now.keys() | then.keys():
                        if self.now.get(id) != then.get(id):
                            self._set(id, then.get(id), by_hand=False)
                case Committed(iteration):
                    self.size += 1
                    if iteration in targets:
                        states[iteration] = dict(self.now)

    def _set(self, id: str, text: str | None, by_hand: bool = True) -> None:
        if text is None:
            self.now.pop(id, None)
        else:
            self.now[id] = text
        self.versions.setdefault(id, [(0, None)]).append((self.size + 1, text))
        if by_hand:
            self.at.setdefault((id, text), []).append(self.size + 1)

    def first(self, id: str, text: str | None, low: int) -> int | None:
        """Return the first commit from `low` on after which a document has a text."""
        versions = self.versions.get(id, [(0, None)])
        last = max(0, bisect_right(versions, low, key=lambda version: version[0]) - 1)
        for number, (start, value) in enumerate(versions[last:], last):
            end = versions[number + 1][0] if number + 1 < len(versions) else self.size + 1
            if value == text and end > low:
                return max(start, low)
        return None


def check(ops: Sequence[Op], history: History) -> None:
    """Raise AssertionError if no order of all operations agrees with the trace and with the times."""
    places: dict[Op, int] = {}
    for op in ops:
        if op.kind != "read":
            found = history.at.get((op.id, op.text), [])
            assert len(found) == 1, f"acknowledged once and written {len(found)} times: {op}"
            places[op] = found[0]
    begun = sorted(places, key=lambda op: op.asked)
    highest = list(accumulate((places[op] for op in begun), max))
    done = sorted(ops, key=lambda op: op.told)
    low, at = 0, 0
    for op in sorted(ops, key=lambda op: op.asked):
        while at < len(done) and done[at].told < op.asked:
            low, at = max(low, places.get(done[at], 0)), at + 1
        if op.kind != "read":
            assert places[op] > low, f"an order against the clock: {op}"
            continue
        seen = history.first(op.id, op.text, low)
        before = bisect_left(begun, op.told, key=lambda other: other.asked)
        high = highest[before - 1] if before else 0
        assert seen is not None and seen <= high, f"a stale or impossible read after commit {low}: {op}"
        places[op] = seen


def contend(where: str, processes: int) -> None:
    async def work() -> tuple[list[Op], str]:
        lives = [LiveStore(where, lambda store: NoSearch()) for _ in range(processes)]
        following = [LiveStore(where, lambda store: NoSearch(), write=False)]
        clients = Clients(lives, following)
        await clients.run()
        for live in (*lives, *following):
            async with live.read():
                pass
        prints = {live.store.fingerprint for live in (*lives, *following)}
        for live in (*lives, *following):
            await live.close()
        assert len(prints) == 1
        return clients.ops, prints.pop()

    ops, fingerprint = asyncio.run(work())
    place = open_backend(where)
    history, store = History(place.events), place.store()
    assert store.fingerprint == fingerprint, "replay gives the live state"
    assert {record.id: record.text for record in store} == history.now
    kinds = Counter(op.kind for op in ops)
    assert kinds.keys() == {"read", "write", "delete", "rollback"}
    check(ops, history)
    print(f"{SECONDS:g} s, {history.size} commits, {len(ops)} operations: {dict(kinds)}")  # shown by pytest -s


def first() -> Store:
    return Store(source(id, text) for id, text in FIRST.items())


def test_a_folder(tmp_path: Path) -> None:
    save_store(first(), tmp_path / "s")
    contend(str(tmp_path / "s"), 1)


def test_postgresql(cluster: Cluster) -> None:
    save_store(first(), cluster.url("contended"))
    contend(cluster.url("contended"), 3)


def test_the_checker_finds_lost_updates_and_stale_reads() -> None:
    commit = [Committed(number, 0, "", 0, 0) for number in range(3)]
    events = [Acted(1, "serve", 1, Edit("d0", "new"), Edited("d0")), commit[1]]
    written = Op(1.0, 2.0, "write", "d0", "new")
    check([written, Op(1.5, 1.6, "read", "d0", FIRST["d0"]), Op(3.0, 4.0, "read", "d0", "new")], History(events))
    for wrong in (
        [written, Op(3.0, 4.0, "read", "d0", FIRST["d0"])],
        [written, Op(1.5, 1.6, "read", "d0", "new"), Op(1.7, 1.8, "read", "d0", FIRST["d0"])],
        [written, Op(1.0, 2.0, "write", "d1", "lost")],
        [Op(0.1, 0.2, "read", "d0", "new"), written],
    ):
        with pytest.raises(AssertionError):
            check(wrong, History(events))
