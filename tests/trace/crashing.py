"""Many processes edit one store in PostgreSQL while they are killed and the server crashes; prints one JSON object.

Run as a script by test_crash.py: it forks its clients, so it runs in a process of its own that has no threads. A client
writes what was acknowledged to a file of its own before it does the next thing.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from kbgym.canonical import decode, encode
from kbgym.errors import KbgymError
from kbgym.gym.actions import Action, Add, Delete, Edit, Error, Link, LinkMany, Unlink
from kbgym.store import Store, source
from kbgym.trace.backend import copy_store, open_backend, save_store
from kbgym.trace.events import Acted, Began, Event

sys.path.insert(0, str(Path(__file__).parents[1]))
from live_stores import LiveClient
from postgres import Cluster

LEDGERS = 24
STUCK = 200  # seconds; a client that dies with its turn holds the others up for one minute, at most


def client(url: str, name: str, file: Path, seed: int) -> None:
    """Edit until the parent process ends; the server may crash meanwhile."""
    parent = os.getppid()
    dice = random.Random(seed)
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    shared, mine, number = None, [], 0
    while os.getppid() == parent:
        try:
            if shared is None:
                shared = LiveClient(url, name)
            number += 1
            action = chosen(dice, shared.store, mine, f"{name}.{number}")
            for target in (action.id,) if isinstance(action, Edit) else ():
                shared.session.show(target, shared.store)
            result = shared.act(action)
        except KbgymError as error:  # it was not done; the live store finds its way back by itself
            file.with_suffix(".refused").write_text(f"{error}\n")
            time.sleep(0.2)
            continue
        if isinstance(result, Error):
            continue
        if isinstance(action, Add):
            mine.append(result.id)
        os.write(out, encode([shared.iteration, action, result]) + b"\n")


def chosen(dice: random.Random, store: Store, mine: list[str], token: str) -> Action:
    some = [record.id for record in store]
    one, other, kind = dice.choice(some), dice.choice(some), dice.random()
    if kind < 0.3:
        # A read, a change and a write: if any of them were lost, its token would be missing in the end.
        ledger = f"ledger{dice.randrange(LEDGERS)}"
        return Edit(ledger, f"{store[ledger].text} {token}")
    if kind < 0.55 or one.startswith("ledger"):
        return Add(f"Sentence {token} of nobody.")
    if kind < 0.75:
        return LinkMany(one, (other, dice.choice(some)))
    if kind < 0.85 and store[one].links:
        return Unlink(one, store[one].links[0])
    if kind < 0.9 and mine and mine[-1] in store and not other.startswith("ledger"):
        return Edit(mine[-1], store[other].text)  # folds one into the other
    if kind < 0.97 and mine:
        return Delete(mine.pop())
    return Link(one, other)


class Clients:
    """Forked clients by name."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.running: dict[str, int] = {}
        self.started = 0

    def start(self) -> None:
        name = f"c{self.started}"
        self.started += 1
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                client(self.url, name, self.folder / f"{name}.jsonl", self.started)
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(1)
        self.running[name] = child

    def kill(self, name: str) -> None:
        child = self.running.pop(name)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, f"{name} stopped before it was killed"

    def acknowledged(self) -> dict[str, list[tuple[int, bytes, bytes]]]:
        """Return the acknowledged edits of each client: iteration, action and result."""
        found = {}
        for file in sorted(self.folder.glob("c*.jsonl")):
            lines = [line for line in file.read_bytes().split(b"\n")[:-1] if line]
            rows = [decode(line, list[object]) for line in lines]
            found[file.stem] = [(int(str(row[0])), encode(row[1]), encode(row[2])) for row in rows]
        return found


def main(folder: Path, edits: int, processes: int, restarts: int, seed: int) -> dict[str, object]:
    dice = random.Random(seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # the server is stopped then too
    cluster = Cluster("fsync = off", "checkpoint_timeout = 30s")
    clients = Clients(cluster.url("crash"), folder)
    begun = time.monotonic()
    try:
        first = [source(f"ledger{n}", f"Ledger {n}:") for n in range(LEDGERS)]
        save_store(Store([*first, *(source(f"d{n}", f"Document {n} of all.") for n in range(200))]), clients.url)
        open_backend(clients.url).start("none", {}).close()
        for _ in range(processes):
            clients.start()
        kills = crashes = due = 0
        before, moved = 0, begun
        while (done := count(folder)) < edits:
            time.sleep(dice.uniform(0.0, 0.1))
            if done > before:
                before, moved = done, time.monotonic()
            elif time.monotonic() - moved > STUCK:
                sys.exit(f"{done} edits were acknowledged, then none for {STUCK} s:\n{refusals(clients)}")
            if done < due:
                continue
            due = done + dice.randrange(edits // 50)
            victim = dice.choice(sorted(clients.running))
            clients.kill(victim)
            clients.start()
            kills += 1
            if crashes < restarts and done > edits * (crashes + 1) / (restarts + 1):
                cluster.stop("immediate")
                time.sleep(dice.uniform(0.0, 0.5))
                cluster.start()
                crashes += 1
        seconds = time.monotonic() - begun
        for name in sorted(clients.running):
            clients.kill(name)
        checked = check(clients, folder)
        return {**checked, "kills": kills, "crashes": crashes, "seconds": round(seconds, 1)}
    finally:
        for name in sorted(clients.running):
            clients.kill(name)
        cluster.remove()


def count(folder: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in folder.glob("c*.jsonl"))


def refusals(clients: Clients) -> str:
    """Return the last refusal of each running client."""
    files = [clients.folder / f"{name}.refused" for name in clients.running]
    return "".join(f"{file.stem}: {file.read_text()}" for file in files if file.exists()) or "no client was refused"


def check(clients: Clients, folder: Path) -> dict[str, object]:
    place = open_backend(clients.url)
    place.verify()  # the tables are the replay of the trace, every result in it verified
    store = place.store()
    # Nothing acknowledged is lost, and it happened as it was said, once.
    happened: dict[int, tuple[str, bytes, bytes]] = {}
    agent = ""
    for event in place.events:
        agent = event.agent if isinstance(event, Began) else agent
        if isinstance(event, Acted):
            assert event.iteration not in happened
            happened[event.iteration] = (agent, encode(event.action), encode(event.result))
    acknowledged, by_agent = clients.acknowledged(), Counter(agent for agent, _, _ in happened.values())
    total = 0
    for name, rows in acknowledged.items():
        total += len(rows)
        for iteration, action, result in rows:
            assert happened[iteration] == (name, action, result), f"iteration {iteration} was promised to {name}"
        # A kill can fall between the commit and the acknowledgement, of one action.
        assert by_agent[name] - len(rows) in (0, 1), f"{name}: {by_agent[name]} done, {len(rows)} acknowledged"
    # No lost update: every token ever written to a ledger still stands there, once.
    tokens = Counter(word for n in range(LEDGERS) for word in store[f"ledger{n}"].text.split()[2:])
    wrote = [decode(action, Edit) for _, action, _ in happened.values() if b'"ledger' in action and b'"edit"' in action]
    written = Counter(edit.text.split()[-1] for edit in wrote if edit.id.startswith("ledger"))
    assert tokens == written and set(tokens.values()) == {1}
    # No dangling link: the database would have refused it, and the store is built anew here.
    assert Store(store).fingerprint == store.fingerprint
    copied = copy_store(clients.url, str(folder / "copy"))
    assert copied.hash == store.fingerprint == open_backend(folder / "copy").store().fingerprint
    events: tuple[Event, ...] = place.events
    return {"acknowledged": total, "committed": len(happened), "tokens": len(tokens), "events": len(events)}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), *(int(word) for word in sys.argv[2:6]))))
