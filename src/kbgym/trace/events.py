"""What stands in a trace: one tagged value a line. No clocks, no machine names: the same run is the same bytes.

A transaction is the events up to and including a `Committed`; what follows the last one was never acknowledged.
Old traces replay for ever: a change of meaning here needs a new `SCHEMA` and a reader for the old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from kbgym.gym.actions import Action, Deleted, Merged, Result, changed_in
from kbgym.store.guard import Verdict
from kbgym.worlds.world import Document, Source

SCHEMA = 1
TUNED = "search"  # the kind of note that changes search settings of the store

Phase = Literal["forward", "backward", "idle", "serve"]


class _Event(msgspec.Struct, frozen=True, tag=True, tag_field="event", omit_defaults=True, gc=False):
    """Nothing in an event leads back to it, so the collector of cycles need not look at the many there are."""


class Genesis(_Event, frozen=True, tag="genesis"):
    """The first line: which documents the store began with, and whatever the run wants remembered of its settings."""

    schema: int
    documents: int
    store: str
    embedder: str = ""
    settings: dict[str, Any] = {}


class Began(_Event, frozen=True, tag="begin"):
    """A pass starts. `question` is the id; the text is kept so that a trace can be read without its world."""

    iteration: int
    phase: Phase
    agent: str
    question: str = ""
    text: str = ""
    epoch: int = 0


class Acted(_Event, frozen=True, tag="act"):
    """One action and its result. `verdict` is what the guard said, recorded because replay must not ask again."""

    iteration: int
    phase: Phase
    step: int
    action: Action
    result: Result
    verdict: Verdict | None = None


class Ended(_Event, frozen=True, tag="end"):
    """A pass is over: answered, done, out of budget or agent failed (with the reason); and what a model used."""

    iteration: int
    phase: Phase
    outcome: str
    failure: str | None = None
    usage: dict[str, Any] | None = None


class Graded(_Event, frozen=True, tag="grade"):
    """The gold is revealed, once, after the answer."""

    iteration: int
    question: str
    golds: tuple[str, ...]
    f1: float
    em: float
    answer: str | None = None


class RolledBack(_Event, frozen=True, tag="rollback"):
    """The store returns to what it was after iteration `to`. History stays; ids are never given out twice."""

    iteration: int
    to: int
    reason: str = ""


class Imported(_Event, frozen=True, tag="import"):
    """The user's own files changed: sentences that are gone, that say something else now, that are new.

    No agent did this. A new document is an original with an origin and a source, not an authored one; an edited one is
    the original again, whatever an agent made of it; a removed one is withdrawn, not lost. `restored` are originals
    that an agent had merged away or deleted and that have to stand for themselves again. `moved` says where unchanged
    sentences stand now, `relinked` which links the texts have now: the actions that follow make them the store's.
    """

    iteration: int
    removed: tuple[str, ...] = ()
    edited: tuple[Document, ...] = ()
    restored: tuple[Document, ...] = ()
    added: tuple[Document, ...] = ()
    moved: dict[str, Source | None] = {}
    relinked: dict[str, tuple[str, ...]] = {}


class Noted(_Event, frozen=True, tag="note"):
    """Something worth keeping that changes nothing: an exam at an epoch's end, a verdict of the gate."""

    iteration: int
    kind: str
    data: dict[str, Any]


class Committed(_Event, frozen=True, tag="commit"):
    """The transaction is whole. `position` is how many training questions the store has now been taught."""

    iteration: int
    position: int
    store: str
    documents: int
    links: int


Event = Genesis | Began | Acted | Ended | Graded | RolledBack | Imported | Noted | Committed


def tunable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a trace that are search settings of its store."""
    return {name: settings[name] for name in ("slots", "slot_threshold") if name in settings}


def named_in(event: Acted) -> Iterator[str]:
    """The documents an action and its result name: whatever stands there that may be an id."""
    for value in (*msgspec.structs.astuple(event.action), *msgspec.structs.astuple(event.result)):
        if isinstance(value, str) and value:
            yield value
        elif isinstance(value, tuple):
            for one in value:
                yield from (one,) if isinstance(one, str) else (one.index, *one.targets)


ANY = ""  # stands for any document


def touched_by(events: Sequence[Event]) -> set[str]:
    """The documents that events changed; `ANY` where links of others went with one, or all of them may have changed."""
    touched: set[str] = set()
    for event in events:
        match event:
            case RolledBack() | Imported() | Acted(result=Deleted() | Merged(gone=str())):
                touched.add(ANY)
            case Acted(result=result):
                touched.update(changed_in(result))
    return touched
