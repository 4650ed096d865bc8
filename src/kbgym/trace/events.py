"""The events of a trace, one tagged value per line, without times or machine names: equal runs give equal bytes.

A transaction ends with a `Committed` event; events after the last one were never acknowledged.
A change of meaning needs a new `SCHEMA` and a reader for the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from kbgym.gym.actions import Action, Deleted, Merged, Result, changed_in
from kbgym.store import Store
from kbgym.store.guard import Verdict
from kbgym.worlds.world import Document, Source

SCHEMA = 1
TUNED = "search"  # the kind of note that changes search settings of the store

Phase = Literal["forward", "backward", "idle", "serve"]


class _Event(msgspec.Struct, frozen=True, tag=True, tag_field="event", omit_defaults=True, gc=False):
    """Base of events. They contain no reference cycles, so the garbage collector need not track them."""


class Genesis(_Event, frozen=True, tag="genesis"):
    """The first line: the number and hash of the initial documents, the embedder and the settings."""

    schema: int
    documents: int
    store: str
    embedder: str = ""
    settings: dict[str, Any] = {}


class Began(_Event, frozen=True, tag="begin"):
    """The start of a pass. `question` is the id; `text` makes the trace readable without its world."""

    iteration: int
    phase: Phase
    agent: str
    question: str = ""
    text: str = ""
    epoch: int = 0


class Acted(_Event, frozen=True, tag="act"):
    """An action and its result. The guard's `verdict` is recorded because a replay must not ask again."""

    iteration: int
    phase: Phase
    step: int
    action: Action
    result: Result
    verdict: Verdict | None = None


class Ended(_Event, frozen=True, tag="end"):
    """The end of a pass: answered, done, out of budget or agent failed (with the reason), and a model's usage."""

    iteration: int
    phase: Phase
    outcome: str
    failure: str | None = None
    usage: dict[str, Any] | None = None


class Graded(_Event, frozen=True, tag="grade"):
    """The expected answer, revealed once, after the answer."""

    iteration: int
    question: str
    golds: tuple[str, ...]
    f1: float
    em: float
    answer: str | None = None


class RolledBack(_Event, frozen=True, tag="rollback"):
    """A rollback of the store to its state after iteration `to`. The history is kept; ids are never reused."""

    iteration: int
    to: int
    reason: str = ""


class Imported(_Event, frozen=True, tag="import"):
    """A change of the user's own files.

    A new document is an original with an origin and a source; an edited one becomes the original again, discarding the
    edits of agents; a removed one is withdrawn, not lost. `restored` are originals that an agent had merged or deleted
    and that become documents again. `moved` are the new sources of unchanged sentences, `relinked` the new links in the
    texts, which the following actions apply.
    """

    iteration: int
    removed: tuple[str, ...] = ()
    edited: tuple[Document, ...] = ()
    restored: tuple[Document, ...] = ()
    added: tuple[Document, ...] = ()
    moved: dict[str, Source | None] = {}
    relinked: dict[str, tuple[str, ...]] = {}


class Noted(_Event, frozen=True, tag="note"):
    """A note without effect on the store: an evaluation at the end of an epoch, a verdict of the gate."""

    iteration: int
    kind: str
    data: dict[str, Any]


class Committed(_Event, frozen=True, tag="commit"):
    """The end of a transaction. `position` is the number of training questions the store has been taught."""

    iteration: int
    position: int
    store: str
    documents: int
    links: int


Event = Genesis | Began | Acted | Ended | Graded | RolledBack | Imported | Noted | Committed


def committed(iteration: int, position: int, store: Store) -> Committed:
    """Return the event that ends a transaction, with the hash and size of the store."""
    return Committed(iteration, position, store.fingerprint, len(store), store.links)


def tunable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a trace that are search settings of its store."""
    return {name: settings[name] for name in ("slots", "slot_threshold") if name in settings}


ANY = ""  # matches any document


def touched_by(events: Sequence[Event]) -> set[str]:
    """Return the documents that events changed; `ANY` if links of others or all documents may have changed."""
    touched: set[str] = set()
    for event in events:
        match event:
            case RolledBack() | Imported() | Acted(result=Deleted() | Merged(gone=str())):
                touched.add(ANY)
            case Acted(result=result):
                touched.update(changed_in(result))
    return touched
