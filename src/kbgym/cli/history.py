"""The history verbs of `kbgym store`: log, diff, blame, rollback, replay and prune."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.analysis.index_use import IndexUse, account
from kbgym.api import open
from kbgym.canonical import encode
from kbgym.cli.common import Printed, verb
from kbgym.cli.settings import place
from kbgym.errors import BadInput, Damaged
from kbgym.gym.actions import Delete
from kbgym.gym.environment import apply
from kbgym.sanitize import counted
from kbgym.store import Record
from kbgym.trace import is_url
from kbgym.trace.events import Acted, Began, Ended, Event, Noted, committed
from kbgym.trace.folder import TRACE, StoreFolder
from kbgym.trace.history import Author, Change, Entry, blame, diff
from kbgym.trace.log import recover

LISTED_PRUNED = 20

# -- log --------------------------------------------------------------------------------------------------------------


@verb("log")
@place("STORE")
def log_command(place: str, limit: int | None) -> Printed:
    """List the lessons of a store, one per line, in the order in which they ended.

    The first column is the N of STORE@N, the store after the lesson. If lessons ran side by side, a lesson's own number
    follows. A cross marks an iteration that a later rollback undid.

    \b
    Examples:
      kbgym store log runs/first
      kbgym store log runs/first@57 --limit 10 --json
    """
    with open(place) as opened:
        entries = opened.log()
    listed = entries[-limit:] if limit else entries
    text = "\n".join(_log_line(entry) for entry in listed) or f"{opened.name} has no history yet."
    return {"iterations": listed, "total": len(entries)}, text


def _log_line(entry: Entry) -> str:
    mark = "x" if entry.undone else " "
    size = f"{entry.documents:>7,} documents {entry.links:>7,} links"
    start = f"{entry.commit:>5}{mark} {size}"
    if entry.rollback_to is not None:
        return f"{start}  rolled back to {entry.rollback_to}" + (f": {entry.reason}" if entry.reason else "")
    f1 = "  -  " if entry.f1 is None else f"{entry.f1:.3f}"
    edits = ", ".join(f"{count} {name}" for name, count in entry.edits.items()) or "no edits"
    asked = f'{entry.question} "{entry.text}"' if entry.text else entry.question or ", ".join(entry.notes)
    verdict = next((f"{note}: " for note in entry.notes if note in ("admitted", "quarantined", "withdrawn")), "")
    asked += f" (gold: {', '.join(entry.golds)})" if entry.golds else ""
    asked += f" (lesson {entry.iteration})" if entry.iteration != entry.commit else ""
    return f"{start}  f1 {f1}  {entry.outcome or '-':<13} {edits:<28} {verdict}{asked}"


# -- diff -------------------------------------------------------------------------------------------------------------


@verb("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
def diff_command(before: str, after: str) -> Printed:
    """Compare two stores, or two iterations of one.

    \b
    Examples:
      kbgym store diff runs/first@0 runs/first
      kbgym store diff stores/graphrag runs/first@57 --json
    """
    with open(before) as left, open(after) as right:
        one, other = left.store, right.store
    difference = diff(one, other)

    def name(id: str) -> str:
        text = other[id].text if id in other else one[id].text if id in one else ""
        return f"[{id}] {text}"

    lines = [f"+ {_document(record)}" for record in difference.added]
    lines += [f"- {_document(record)}" for record in difference.removed]
    for change in difference.edited:
        lines += [f"~ [{change.id}] {change.before}", f"    now: {change.after}"]
    lines += [f"+ link [{link.source}] -> {name(link.target)}" for link in difference.links_added]
    lines += [f"- link [{link.source}] -> {name(link.target)}" for link in difference.links_removed]
    lines += [f"~ the links of {name(id)} stand in another order" for id in difference.reordered]
    lines += [f"~ the provenance of {name(id)} differs" for id in difference.provenance]
    counts = (
        f"{len(difference.added)} documents added, {len(difference.removed)} removed, {len(difference.edited)} edited;"
        f" {len(difference.links_added)} links added, {len(difference.links_removed)} removed."
    )
    return msgspec.to_builtins(difference), [*lines, counts] if lines else "The two stores are the same."


def _document(record: Record) -> str:
    return f"[{record.id}] {record.text}"


# -- blame ------------------------------------------------------------------------------------------------------------


@verb("blame")
@place("STORE")
@click.argument("document", metavar="DOC")
def blame_command(place: str, document: str) -> Printed:
    """Show which question and step wrote a document, changed it, and added each of its links.

    Rolled-back edits are omitted.

    \b
    Example:
      kbgym store blame runs/harbour n4
    """
    with open(place) as opened:
        found = blame(opened.place.initial.copy, opened.events, document, opened.at)
        origins = found.record.origins if found.record else ()
        spans = opened.sources((document, *origins))
    result = {**msgspec.to_builtins(found), "sources": msgspec.to_builtins(spans)}
    lines = [_document(found.record) if found.record else f"[{found.id}] is gone."]
    if found.initial:
        lines.append("  stood in the initial store.")
    lines += [f"  {_said(change)} by {_author(change.by)}" for change in found.changes]
    if found.record:
        lines.append(f"  {len(found.links)} links:" if found.links else "  It links to nothing.")
    for link in found.links:
        by = f"added by {_author(link.by)}" if link.by else "stood in the initial store"
        lines += [f"    -> [{link.target}] {link.text}", f"       {by}"]
    lines += [f"  {id} stands in {span.file}, characters {span.start} to {span.end}." for id, span in spans.items()]
    return result, lines


def _said(change: Change) -> str:
    match change.kind:
        case "merged" if change.other:
            return f"absorbed [{change.other}]"
        case "merged":
            return f'was found to say "{change.text}" already'
        case "folded":
            return f"was folded into [{change.other}]"
        case "linked":
            parts = [f"{len(ids)} links {what}" for ids, what in ((change.added, "added"), (change.removed, "removed"))]
            return " and ".join(part for part in parts if not part.startswith("0 ")) or "links reordered"
        case "edited":
            return f'edited to "{change.text}"'
    return change.kind


def _author(author: Author) -> str:
    question = f', question {author.question} "{author.text}"' if author.question else ""
    who = author.agent or "an unnamed agent"
    return f"{who}: iteration {author.iteration}, {author.phase} step {author.step}{question}"


# -- rollback ---------------------------------------------------------------------------------------------------------


@verb("rollback")
@place("STORE")
def rollback_command(place: str, to: int, reason: str) -> Printed:
    """Return a store to an earlier iteration. The history is kept, so a rollback can be rolled back.

    \b
    Example:
      kbgym store rollback runs/first --to 57 --reason "iteration 58 deleted a city"
    """
    with open(place) as opened:
        folder = opened.place
        if folder.at is not None:
            named = f"{opened.name} names an iteration"
            raise BadInput(f"{named}; roll back the store itself, {folder.name}, with --to {to}.")
        store = folder.rollback(to, reason)
        size = {"documents": len(store), "links": store.links}
        result = {"iteration": folder.iteration, "to": to, **size, "hash": store.fingerprint}
    now = f"{len(store):,} documents, {store.links:,} links (now iteration {result['iteration']})"
    return result, f"{opened.name} is back at iteration {to}: {now}."


@verb("replay")
@place("STORE")
def replay_command(place: str, at: int | None, mend: bool) -> Printed:
    """Rebuild a store from its trace and verify every recorded result.

    Nothing is searched, embedded or judged again. The exit code is 2 if the trace is damaged, with the line named, and
    1 if it is shorter than what was committed.

    \b
    Examples:
      kbgym store replay runs/first
      kbgym store replay runs/first --at 57 --json
      kbgym store replay runs/first --recover
    """
    started = time.perf_counter()
    events = 0
    if mend and is_url(place):
        raise BadInput("--recover is for folders; a database looks after its own files.")
    mended = recover(Path(place) / TRACE) if mend else None
    try:
        with open(place) as opened:
            reading = opened.place.reading
            if reading is None and mended is not None:
                text = f"{opened.name}: nothing of its trace was whole; it is as it began. See {mended.damaged}."
                return {"identical": True, "events": 0, "recovered": msgspec.to_builtins(mended)}, text
            if reading is None:
                raise BadInput(f"{opened.name} has no trace to replay.")

            def watch(event: Event, store: Any) -> None:
                nonlocal events
                events += 1

            store = opened.place.store(at, watch)
            opened.place.verify()
    except Damaged as damage:
        if click.get_current_context().params["as_json"]:
            click.echo(encode({"identical": False, "events": events, "problem": str(damage)}))
        raise
    seconds = time.perf_counter() - started
    counts = {"events": events, "documents": len(store), "links": store.links, "dropped": reading.dropped}
    result: dict[str, Any] = {"identical": True, **counts, "hash": store.fingerprint, "seconds": round(seconds, 3)}
    lines = [
        f"{opened.name}: {events:,} events replayed in {seconds:.2f} s, every recorded result identical.",
        f"{len(store):,} documents, {store.links:,} links, hash {store.fingerprint}",
    ]
    if mended is not None:
        result["recovered"] = msgspec.to_builtins(mended)
        lost = "" if mended.lost is None else f", {mended.lost} iterations were lost"
        lines.append(f"Kept up to iteration {mended.iteration}{lost}; the damaged files are in {mended.damaged}.")
    if reading.dropped:
        lines.append(f"Left out, never committed: {reading.dropped}.")
    return result, lines


# -- prune ------------------------------------------------------------------------------------------------------------


@verb("prune")
@place("RUN", type=click.Path(path_type=Path, exists=True, file_okay=False))
def prune_command(place: Path, unused: bool, harmful: bool, dry_run: bool) -> Printed:
    """Delete documents that training wrote in a RUN: those that its exams never opened, or that did harm.

    Compares exams of the run's current store with exams of its flat store. All deletions are one iteration,
    which `kbgym store rollback` undoes.

    \b
    Example:
      kbgym store prune runs/r0 --unused --harmful --dry-run
    """
    if not unused and not harmful:
        raise BadInput("say what to take out: --unused, --harmful, or both.")
    with open(str(place)) as opened:
        accounted = account(place, opened.store)
    chosen = [*(accounted.unused if unused else ()), *(accounted.harmful if harmful else ())]
    iteration = None if dry_run or not chosen else _remove(place, chosen)
    counts = {name: len(getattr(accounted, name)) for name in ("unused", "harmful")}
    result: dict[str, Any] = {"sets": accounted.sets, "n": accounted.n, "written": len(accounted.indexes), **counts}
    result |= {"pruned": [one.id for one in chosen], "iteration": iteration}
    lines = [f"  {one.id} {one.text[:70]!r}: {_why(one)}" for one in chosen[:LISTED_PRUNED]]
    lines += [f"  and {len(chosen) - LISTED_PRUNED} more"] if len(chosen) > LISTED_PRUNED else []
    asked = f"By {counted(accounted.n, 'question')} ({', '.join(accounted.sets)})"
    of = f"{len(chosen)} of {len(accounted.indexes)} documents that training wrote"
    if iteration is None:
        return result, [f"{asked}, {of} would go." if chosen else f"{asked}, there is nothing to take out.", *lines]
    undo = f"Undo: kbgym store rollback {place} --to {iteration - 1}"
    again = f"That was an estimate; ask again: kbgym exam {place} --set {accounted.sets[0]}"
    return result, [f"{asked}, {of} are gone (iteration {iteration}).", *lines, again, undo]


def _why(one: IndexUse) -> str:
    if not one.questions:
        return "never opened"
    return f"opened by {len(one.questions)}, {-one.saved} actions lost, accuracy {one.f1:+.2f}, by estimate"


def _remove(place: Path, chosen: list[IndexUse]) -> int:
    """Delete the documents in one transaction and return its iteration."""
    folder = StoreFolder(place)
    store = folder.store()
    iteration = folder.iteration + 1
    deletions = [Delete(one.id) for one in chosen]
    events: list[Event] = [
        Began(iteration, "idle", "prune"),
        *(Acted(iteration, "idle", step, one, apply(store, one)) for step, one in enumerate(deletions, 1)),
        Noted(iteration, "prune", {"documents": len(chosen)}),
        Ended(iteration, "idle", "done"),
        committed(iteration, folder.position, store),
    ]
    with folder.resume() as writer:
        writer.commit(events)
    return iteration
