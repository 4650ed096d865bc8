"""Shared fixtures for store and trace tests: a small store, a live environment with a trace, random actions."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import strategies as st

from kbgym.canonical import encode, write_lines
from kbgym.gym.actions import Action, Add, Answer, Delete, Done, Edit, Invalid, Link, LinkMany, Read, Search, Unlink
from kbgym.gym.environment import Environment, Step
from kbgym.gym.tools import Role
from kbgym.search.embed import HashEmbedder
from kbgym.search.engine import Engine
from kbgym.store import Record, Store, ledger, source
from kbgym.store.ledger import counts_of
from kbgym.store.record import normalised
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Graded
from kbgym.trace.folder import StoreFolder
from kbgym.trace.log import TraceWriter

SENTENCES = (
    "Anna Berg lives in Lund.",
    "Bo Ek lives in Lund.",
    "Anna Berg is a child of Carl Berg.",
    "Carl Berg is the father of Anna Berg.",
    "Bo Ek works as a baker.",
    "Bo Ek is a friend of Anna Berg.",
    "anna berg lives in lund",  # says the same as the first
)
HASH = "hash-64"


def records() -> list[Record]:
    """Seven sentences; two records carry links and one an absorbed origin, as a baseline's store may."""
    first = [source(f"d{number}", text) for number, text in enumerate(SENTENCES)]
    hub = Record("hub/lund", "People who live in Lund.", ("d1", "d0"), flag="authored")
    return [*first, hub, Record("n2", "Bakers.", ("d4", "hub/lund"), flag="authored", absorbed=("x1",))]


def all_of(store: Store) -> tuple[object, ...]:
    """Everything about a store that can be asked, the order of documents and of inbound links too."""
    inbound = {record.id: store.inbound(record.id) for record in store}
    said = {text: store.same_text(text) for text in SENTENCES}
    return list(store), len(store), inbound, said, counts_of(store), ledger(store), store.merges, store.coded


def engine_of(store: Store) -> Engine:
    engine = Engine(HashEmbedder(64))
    engine.load((record.id, record.text) for record in store)
    return engine


def step(environment: Environment, action: Action, role: Role = "curator") -> Step:
    return asyncio.run(environment.step(action, role))


class Live:
    """A store folder being written: an environment, its trace, and a copy of every committed state to compare with."""

    def __init__(self, path: Path, initial: list[Record] | None = None) -> None:
        path.mkdir(parents=True, exist_ok=True)
        write_lines(path / "records.jsonl", records() if initial is None else initial)
        self.path = path
        self.folder = StoreFolder(path)
        self.writer: TraceWriter = self.folder.start(HASH, {"seed": 0})
        self.iteration = 0
        self.pending: list[Event] = []
        self.states: dict[int, list[Record]] = {}
        self.settle(self.folder.store())
        self.states[0] = list(self.store)

    def settle(self, store: Store) -> None:
        self.environment = Environment(store, engine_of(store))

    @property
    def store(self) -> Store:
        return self.environment.store

    def act(self, action: Action, role: Role = "curator") -> Step:
        phase = "forward" if role == "reader" else "backward"
        if not self.pending:
            number = self.iteration + 1
            self.pending.append(Began(number, phase, "tester", f"q{number}", f"What is question {number}?"))
        done = step(self.environment, action, role)
        self.pending.append(Acted(self.iteration + 1, phase, len(self.pending), done.action, done.result, done.verdict))
        return done

    def commit(self, graded: float | None = None) -> None:
        self.iteration += 1
        if graded is not None:
            self.pending.append(Ended(self.iteration, "forward", "answered"))
            self.pending.append(Graded(self.iteration, f"q{self.iteration}", ("Lund",), graded, graded, "Lund"))
        commit = Committed(self.iteration, self.iteration, self.store.fingerprint, len(self.store), self.store.links)
        self.writer.commit([*self.pending, commit])
        self.pending = []
        self.states[self.iteration] = list(self.store)

    def rollback(self, to: int, reason: str = "") -> None:
        """Drop what is pending and return to an iteration, as a person would between two runs."""
        self.close()
        self.settle(StoreFolder(self.path).rollback(to, reason))
        self.iteration += 1
        self.states[self.iteration] = list(self.store)
        self.reopen()

    def reopen(self) -> None:
        self.writer = StoreFolder(self.path).resume()

    def close(self) -> None:
        self.pending = []
        self.writer.close()


# -- random actions ---------------------------------------------------------------------------------------------------

IDS = st.sampled_from(
    [
        *(f"d{n}" for n in range(8)),
        *(f"n{n}" for n in range(1, 9)),
        "hub/lund",
        "nobody",
        "",
        "a/b",
        "\u202ex",
        "\ud800",
    ]
)
TEXTS = st.one_of(
    st.sampled_from(
        [
            *SENTENCES,
            "People who live in Lund.",
            "Residents of Lund.",
            "Friends of Anna Berg.",
            "The friends of Anna Berg",
            "Carl Berg is a child of Anna Berg.",
            "  Bo   Ek lives in Lund ",
            "",
            "\x00",
            "\ud800",
            "x" * 5000,
        ]
    ),
    st.text(max_size=12),
)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Search, TEXTS, st.sampled_from([1, 2, 3, 0, -1, 10**9, 10**30, True, "1", 1.0])),
    st.builds(Read, IDS),
    st.builds(Answer, TEXTS),
    st.builds(Add, TEXTS),
    st.builds(Add, TEXTS),
    st.builds(Edit, IDS, TEXTS),
    st.builds(Edit, IDS, TEXTS),
    st.builds(Delete, IDS),
    st.builds(Link, IDS, IDS),
    st.builds(LinkMany, IDS, st.lists(IDS, max_size=6).map(tuple)),
    st.builds(LinkMany, IDS, st.just(tuple(f"d{n}" for n in range(41)))),
    st.builds(Unlink, IDS, IDS),
    st.just(Done()),
    st.builds(Invalid, st.text(max_size=5), st.text(max_size=5)),
)
ROLES: st.SearchStrategy[Role] = st.sampled_from(["curator", "curator", "curator", "reader"])


# -- what must always hold --------------------------------------------------------------------------------------------


def check_invariants(store: Store) -> None:
    """No dangling, double or self link; counts, hash and inbound links equal those computed from scratch."""
    everything = list(store)
    inbound: dict[str, set[str]] = {}
    for record in everything:
        assert record.id not in record.links
        assert len(set(record.links)) == len(record.links)
        for target in record.links:
            assert target in store, f"{record.id} links to {target}, which is gone"
            inbound.setdefault(target, set()).add(record.id)
        assert record.origin is None or record.origin not in record.absorbed
    for record in everything:
        assert set(store.inbound(record.id)) == inbound.get(record.id, set())
    fresh = Store(everything)
    assert store.fingerprint == fresh.fingerprint
    assert store.links == fresh.links == sum(len(record.links) for record in everything)
    counts = ledger(store)
    assert counts.untouched + counts.edited + counts.authored == counts.documents == len(everything)
    alive = {origin for record in everything for origin in record.origins}
    assert counts.lost_origins + len(alive) == counts.origins
    assert counts.orphans <= counts.empty_indexes <= counts.authored
    assert counts.same_texts == len(everything) - len({normalised(record.text) for record in everything})


def check_search(environment: Environment) -> None:
    """Search finds exactly the documents of the store, each under its present text."""
    store, engine = environment.store, environment.engine
    hits = engine.search("Lund", 0, 10_000)
    assert sorted(id for id, _ in hits) == sorted(record.id for record in store)
    for record in store:
        best = dict(engine.nearest(record.text, 10_000))
        assert best[record.id] > 0.999, f"{record.id} is not found under its own text"


def lines(everything: list[Record]) -> bytes:
    return b"\n".join(encode(record) for record in everything)
