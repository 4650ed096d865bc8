"""Kill a writing process many times and look at what is left; prints one JSON object. Run as a script by test_kill.py.

It forks its writers, so it runs in a process of its own that has no threads. Half of the writers write a few bytes at a
time and slowly, so that many kills fall inside a transaction.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from kbgym.canonical import write_lines
from kbgym.gym.actions import Add, Delete, LinkMany
from kbgym.gym.environment import apply
from kbgym.store import Store, source
from kbgym.trace import log
from kbgym.trace.events import Acted, Began, Committed, Event
from kbgym.trace.folder import StoreFolder

whole_write = os.write


def write_a_little(file: int, data: memoryview) -> int:
    time.sleep(0.0002)
    return whole_write(file, bytes(data[:64]))


def write_for_ever(path: Path, acknowledge: int, piecemeal: bool) -> None:
    """Open or begin a trace and commit small transactions, acknowledging each once it is committed."""
    if piecemeal:
        log.os.write = write_a_little  # type: ignore[attr-defined]
    folder = StoreFolder(path)
    writer = folder.resume() if folder.reading else folder.start("none", {})
    store = folder.store()
    iteration = folder.reading.iteration if folder.reading else 0
    while True:
        iteration += 1
        events = transaction(store, iteration)
        writer.commit(events)
        whole_write(acknowledge, f"{iteration} {store.fingerprint}\n".encode())


def transaction(store: Store, iteration: int) -> list[Event]:
    newest = f"n{iteration}"
    actions = [Add(f"Sentence number {iteration}."), LinkMany(newest, ("d0", "d1", "nobody"))]
    if iteration % 3 == 0:
        actions.append(Delete(f"n{iteration - 1}"))
    events: list[Event] = [Began(iteration, "serve", "writer")]
    for step, action in enumerate(actions, 1):
        events.append(Acted(iteration, "serve", step, action, apply(store, action)))
    return [*events, Committed(iteration, iteration, store.fingerprint, len(store), store.links)]


def kill_once(path: Path, delay: float, piecemeal: bool) -> list[tuple[int, str]]:
    """Start a writer, kill it, and return everything it acknowledged."""
    reader, acknowledge = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write_for_ever(path, acknowledge, piecemeal)
        finally:
            os._exit(1)
    os.close(acknowledge)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, "the writer stopped before it was killed"
    with open(reader, encoding="ascii") as acknowledged:
        lines = [line.split() for line in acknowledged if line.endswith("\n")]
    return [(int(iteration), fingerprint) for iteration, fingerprint in lines]


def main(base: Path, kills: int, seed: int) -> dict[str, int]:
    dice = random.Random(seed)
    counts = {"kills": 0, "acknowledged": 0, "in_flight": 0, "torn": 0, "not_begun": 0}
    for round_ in range(kills):
        path = base / f"store-{round_ // 10}"
        if not path.exists():
            path.mkdir()
            write_lines(path / "records.jsonl", [source("d0", "First."), source("d1", "Second.")])
        before = StoreFolder(path).reading
        last = before.iteration if before else 0
        acknowledged = kill_once(path, dice.uniform(0, 0.02), piecemeal=bool(round_ % 2))
        folder = StoreFolder(path)
        if folder.reading is None:
            assert not acknowledged and before is None
            counts["not_begun"] += 1
            continue
        assert not before or folder.events[: len(before.events)] == before.events, "history was rewritten"
        highest = acknowledged[-1][0] if acknowledged else last
        assert [iteration for iteration, _ in acknowledged] == list(range(last + 1, highest + 1))
        assert folder.reading.iteration in (highest, highest + 1), "more than the one in flight, or less than was said"
        states = {event.iteration: event.store for event in folder.events if isinstance(event, Committed)}
        for iteration, fingerprint in acknowledged:
            assert states[iteration] == fingerprint
        folder.store()  # replays and verifies everything
        counts["kills"] += 1
        counts["acknowledged"] += len(acknowledged)
        counts["in_flight"] += folder.reading.iteration == highest + 1
        counts["torn"] += folder.reading.dropped is not None
    return counts


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
