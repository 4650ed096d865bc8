"""Pure functions over the history: `blame` (authorship), `log` (iterations) and `diff` (changes)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from kbgym.errors import BadInput
from kbgym.gym.actions import EDITS, Edited, Error, Linked, Merged
from kbgym.store import Record, Store
from kbgym.trace.events import (
    Acted,
    Began,
    Committed,
    Ended,
    Event,
    Genesis,
    Graded,
    Imported,
    Noted,
    Phase,
    RolledBack,
)
from kbgym.trace.replay import effective, replay

# -- blame ------------------------------------------------------------------------------------------------------------


class Author(msgspec.Struct, frozen=True):
    """The origin of a change: iteration, question, pass, step and agent."""

    iteration: int
    phase: Phase
    step: int
    agent: str = ""
    question: str = ""
    text: str = ""


Kind = Literal["written", "edited", "merged", "linked", "deleted", "folded"]


class Change(msgspec.Struct, frozen=True):
    """One change of a document.

    `merged`: another document (`other`) was merged into it, or a new sentence (`text`) was a duplicate of it.
    `folded`: it was itself merged into `other`. `linked`: only its links changed.
    """

    kind: Kind
    by: Author
    text: str | None = None
    other: str | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class LinkAuthor(msgspec.Struct, frozen=True):
    """A current link of the document, without an author if it is from the initial store."""

    target: str
    text: str
    by: Author | None = None


class Blame(msgspec.Struct, frozen=True):
    """The history of a document. `record` is None if it was deleted or merged into another."""

    id: str
    initial: bool
    record: Record | None
    changes: tuple[Change, ...]
    links: tuple[LinkAuthor, ...]


def blame(initial: Callable[[], Store], events: Sequence[Event], id: str, at: int | None = None) -> Blame:
    """Return the changes of a document and the authors of its links; changes that were rolled back are omitted."""
    began: dict[tuple[int, str], Began] = {}
    changes: tuple[Change, ...] = ()
    start = initial()
    then: dict[int, tuple[tuple[Change, ...], Record | None]] = {0: ((), _record(start, id))}
    seen = then[0][1]

    def watch(event: Event, store: Store) -> None:
        nonlocal changes, seen
        match event:
            case Began(iteration, phase):
                began[iteration, phase] = event
            case Acted() | Imported():
                record = _record(store, id)
                if change := _change(event, id, seen, record, began):
                    changes = (*changes, change)
                seen = record
            case Committed(iteration):
                then[iteration] = (changes, seen)
            case RolledBack(_, to):
                changes, seen = then[to]

    store = replay(lambda: start, events, at, watch)
    if seen is None and not changes:
        raise BadInput(f"there is and was no document {id!r} in this store.")
    wrote = {target: change.by for change in changes for target in change.added}
    links = tuple(LinkAuthor(target, store[target].text, wrote.get(target)) for target in (seen.links if seen else ()))
    return Blame(id, then[0][1] is not None, seen, changes, links)


def _record(store: Store, id: str) -> Record | None:
    return store[id] if id in store else None  # noqa: SIM401 - a store's get refuses what is not there


def _change(
    event: Acted | Imported,
    id: str,
    before: Record | None,
    after: Record | None,
    began: Mapping[tuple[int, str], Began],
) -> Change | None:
    """Return the change that one action or import made to a document, if any."""
    phase: Phase = event.phase if isinstance(event, Acted) else "idle"
    step, result = (event.step, event.result) if isinstance(event, Acted) else (0, None)
    merged_here = isinstance(result, Merged) and result.into == id
    if before is after and not merged_here:
        return None
    by = Author(event.iteration, phase, step)
    if (pass_ := began.get((event.iteration, phase))) is not None:
        by = Author(event.iteration, phase, step, pass_.agent, pass_.question, pass_.text)
    if after is None:
        into = result.into if isinstance(result, Merged) else None
        return Change("folded" if into else "deleted", by, other=into)
    if before is None:
        return Change("written", by, text=after.text)
    added = tuple(target for target in after.links if target not in before.links)
    removed = tuple(target for target in before.links if target not in after.links)
    if isinstance(event, Acted) and isinstance(result, Merged) and merged_here:
        said = getattr(event.action, "text", None)
        return Change("merged", by, text=said, other=result.gone, added=added, removed=removed)
    if before.text != after.text or isinstance(result, Edited):
        return Change("edited", by, text=after.text)
    if result is None and not removed:
        return None  # an import changed the provenance of the document, but nothing an agent sees
    return Change("linked", by, added=added, removed=removed)


# -- log --------------------------------------------------------------------------------------------------------------


OF_A_PASS = (Began, Acted, Ended, Graded)


class Entry(msgspec.Struct, frozen=True):
    """One iteration: the question, the outcome and the edits. `undone` if a later rollback reverted it.

    In `edits`, `merges` are documents merged into another and `refused` are adds of duplicates, which change nothing.
    Concurrent lessons may end in another order than they began: `commit` is the iteration after which this one is
    complete (`RUN@commit`), and `documents` and `links` are counted then.
    """

    iteration: int
    commit: int
    position: int
    documents: int
    links: int
    question: str = ""
    text: str = ""
    epoch: int = 0
    agents: dict[str, str] = {}
    outcome: str = ""
    answer: str | None = None
    f1: float | None = None
    em: float | None = None
    golds: tuple[str, ...] = ()
    edits: dict[str, int] = {}
    errors: int = 0
    notes: tuple[str, ...] = ()
    rollback_to: int | None = None
    reason: str = ""
    undone: bool = False


def log(events: Sequence[Event]) -> list[Entry]:
    """Return an entry for each iteration, oldest first, in the order of their last commits."""
    alive = {event.iteration for event in effective(events) if isinstance(event, Committed)}
    transactions = list(_transactions(events))
    ends = {e.iteration: number for number, some in enumerate(transactions) for e in some if isinstance(e, OF_A_PASS)}
    entries: list[Entry] = []
    passes: dict[int, list[Event]] = {}
    for number, (*some, commit) in enumerate(transactions):
        assert isinstance(commit, Committed)
        for event in some:
            if isinstance(event, OF_A_PASS):
                passes.setdefault(event.iteration, []).append(event)
        over = sorted(iteration for iteration in passes if ends[iteration] == number)
        # Events outside of passes (a rollback, a note, an import) belong to the last pass or form their own entry.
        rest = [event for event in some if not isinstance(event, OF_A_PASS)]
        for iteration in over or [commit.iteration]:
            own = passes.pop(iteration, []) + (rest if iteration == (over or [iteration])[-1] else [])
            entries.append(_entry(iteration, own, commit, commit.iteration not in alive))
    return entries


def _transactions(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Yield the events of each transaction, the commit last."""
    some: list[Event] = []
    for event in events:
        if not isinstance(event, Genesis):
            some.append(event)
        if isinstance(event, Committed):
            yield some
            some = []


def _entry(iteration: int, events: Iterable[Event], commit: Committed, undone: bool) -> Entry:
    found: dict[str, object] = {}
    agents: dict[str, str] = {}
    notes: list[str] = []
    edits = dict.fromkeys(EDITS.values(), 0)
    errors = refused = 0
    for event in events:
        match event:
            case Began(_, phase, agent, question, text, epoch):
                agents[phase] = agent
                found |= {"question": question, "text": text, "epoch": epoch}
            case Acted(_, _, _, _, Error()):
                errors += 1
            case Acted(_, _, _, _, Merged(_, None)):  # an add of a duplicate; only an edit merges documents
                refused += 1
            case Acted(_, _, _, _, result) if edit := EDITS.get(type(result)):
                edits[edit] += len(result.linked) if isinstance(result, Linked) else 1
            case Ended(_, phase, outcome) if phase != "backward" or "outcome" not in found:
                found["outcome"] = outcome
            case Graded(_, _, golds, f1, em, answer):
                found |= {"f1": f1, "em": em, "answer": answer, "golds": golds}
            case RolledBack(_, to, reason):
                found |= {"rollback_to": to, "reason": reason}
            case Noted(_, "gate", data):
                notes.append(str(data.get("verdict")))
                found |= {"reason": str(data.get("reason", ""))}
            case Noted(_, kind) if kind not in ("asked", "refused"):  # a verdict covers the whole pass
                notes.append(kind)
    base = Entry(iteration, commit.iteration, commit.position, commit.documents, commit.links, undone=undone)
    done = {f"{name}s": count for name, count in edits.items() if count}
    done |= {"refused": refused} if refused else {}
    return msgspec.structs.replace(base, **found, agents=agents, edits=done, errors=errors, notes=tuple(notes))


# -- diff -------------------------------------------------------------------------------------------------------------


class TextChange(msgspec.Struct, frozen=True):
    """A document whose text differs."""

    id: str
    before: str
    after: str


class LinkChange(msgspec.Struct, frozen=True):
    source: str
    target: str


class Difference(msgspec.Struct, frozen=True):
    """The changes from one store to another; it equals `Difference()` if and only if they hold the same records.

    `reordered`: documents with the same links in another order. `provenance`: documents that agents cannot tell apart,
    but whose origin, flag or absorbed origins differ.
    """

    added: tuple[Record, ...] = ()
    removed: tuple[Record, ...] = ()
    edited: tuple[TextChange, ...] = ()
    links_added: tuple[LinkChange, ...] = ()
    links_removed: tuple[LinkChange, ...] = ()
    reordered: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()


def diff(before: Store, after: Store) -> Difference:
    """Return the changes from one store to another, including the links of added and removed documents."""
    edited: list[TextChange] = []
    links_added: list[LinkChange] = []
    links_removed: list[LinkChange] = []
    reordered: list[str] = []
    provenance: list[str] = []
    removed = tuple(record for record in before if record.id not in after)
    for gone in removed:
        links_removed += [LinkChange(gone.id, target) for target in gone.links]
    for new in after:
        old = before[new.id] if new.id in before else Record(new.id, "")
        if old is new:
            continue
        links_added += [LinkChange(new.id, target) for target in new.links if target not in set(old.links)]
        links_removed += [LinkChange(new.id, target) for target in old.links if target not in set(new.links)]
        if new.id not in before:
            continue
        if old.text != new.text:
            edited.append(TextChange(new.id, old.text, new.text))
        if old.links != new.links and set(old.links) == set(new.links):
            reordered.append(new.id)
        if (old.origin, old.flag, old.absorbed) != (new.origin, new.flag, new.absorbed):
            provenance.append(new.id)
    added = tuple(record for record in after if record.id not in before)
    links = tuple(links_added), tuple(links_removed)
    return Difference(added, removed, tuple(edited), *links, tuple(reordered), tuple(provenance))
