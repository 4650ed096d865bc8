"""Explain and prune the documents that training wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.analysis.index_use import IndexUse, account, needs, opened_in, pairs_of
from kbgym.analysis.verdict import Pair
from kbgym.api import Workspace, open
from kbgym.cli.common import Printed, verb
from kbgym.cli.settings import place
from kbgym.errors import BadInput
from kbgym.gym.actions import Answer, Delete, Found, Opened, Read, Search
from kbgym.gym.environment import apply
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Event, Noted
from kbgym.trace.folder import StoreFolder
from kbgym.trace.history import Author, blame
from kbgym.trace.replay import committed
from kbgym.training.exam import Row, Shot

LISTED = 5


@verb("explain")
@place("RUN", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("question", required=False)
def explain_command(place: Path, question: str | None) -> Printed:
    """How a QUESTION (its id, or its words) of a RUN's exams went on the flat and on the trained store.

    Which documents that training wrote it opened, who wrote them when, and from which question. Without a QUESTION, the
    ones that gained and lost most.

    \b
    Example:
      kbgym store explain runs/harbour
      kbgym store explain runs/harbour q-fe25584fc9
    """
    with open(str(place)) as opened:
        pairs = pairs_of(place, opened.store)
        if question is None:
            return _listed(place, pairs)
        return _explained(opened, *_found(place, pairs, question))


def _found(place: Path, pairs: dict[str, list[Pair]], wanted: str) -> tuple[str, Pair]:
    every = [(name, pair) for name, some in pairs.items() for pair in some]
    for name, pair in every:
        if wanted in (pair[0].id, pair[0].question):
            return name, pair
    near = [(name, pair) for name, pair in every if wanted.lower() in pair[0].question.lower()]
    if len({pair[0].id for _, pair in near}) == 1:
        return near[0]
    many = f"{len(near)} questions of its exams have these words" if near else "no question of its exams is called so"
    raise BadInput(f"{place}: {many}; `kbgym store explain {place}` lists some.")


def _gain(pair: Pair) -> tuple[float, int]:
    trained, flat = pair
    return (trained.f1 or 0.0) - (flat.f1 or 0.0), flat.actions - trained.actions


def _listed(place: Path, pairs: dict[str, list[Pair]]) -> Printed:
    every = sorted(
        ((name, pair) for name, some in pairs.items() for pair in some), key=lambda one: _gain(one[1]), reverse=True
    )
    best = [one for one in every if _gain(one[1]) > (0, 0)][:LISTED]
    worst = [one for one in reversed(every) if _gain(one[1]) < (0, 0)][:LISTED]
    lines = []
    for title, some in (("Gained most:", best), ("Lost most:", worst)):
        lines += [title] if some else []
        for name, (trained, flat) in some:
            went = f"{flat.actions} to {trained.actions} actions, F1 {flat.f1:.2f} to {trained.f1:.2f}"
            lines.append(f"  {trained.id} ({name}) {went}: {trained.question}")
    result = {"gained": [one[1][0].id for one in best], "lost": [one[1][0].id for one in worst], "n": len(every)}
    return result, [
        *(lines or ["Every question went the same on both stores."]),
        f"One of them: kbgym store explain {place} ID",
    ]


def _explained(opened: Workspace, name: str, pair: Pair) -> Printed:
    trained, flat = pair
    store, before = opened.store, opened.place.store(0)
    written = {record.id: record.text for record in store if record.flag == "authored"}
    used = [
        {**_written(opened, id, written[id]), "needed": needs(trained, id)} for id in opened_in(trained.shots, written)
    ]
    gained, saved = _gain(pair)
    lines = [
        f"{trained.id} ({name}): {trained.question}",
        f"Right is: {', '.join(trained.golds)}",
        *_pass("flat", flat, before),
        *_pass("trained", trained, store),
        f"On the trained store {_said(saved, gained)}.",
    ]
    if not used:
        lines.append("It opened nothing that training wrote: what differs is what its searches found.")
    for one in used:
        lines.append(f"  opened {one['id']} {one['text'][:60]!r}, written by {_author(one['by'])}")
        if one["needed"]:
            lines.append("    this made the difference: what the answer rests on was first seen through it alone")
    result = {
        "question": trained.id,
        "text": trained.question,
        "golds": list(trained.golds),
        "set": name,
        "actions_saved": saved,
        "f1_gained": gained,
        "stores": {"flat": _plain(flat), "trained": _plain(trained)},
        "opened": msgspec.to_builtins(used),
    }
    return result, lines


def _written(opened: Workspace, id: str, text: str) -> dict[str, Any]:
    life = blame(opened.place.initial.copy, opened.events, id, opened.at)
    by = next((change.by for change in life.changes if change.kind == "written"), None)
    return {"id": id, "text": text, "by": by}


def _author(by: Author | None) -> str:
    if by is None:
        return "nobody knows whom"
    asked = f" after {by.question} {by.text!r}" if by.question else ""
    return f"{by.agent or 'an unnamed agent'} in iteration {by.iteration}{asked}"


def _said(saved: int, gained: float) -> str:
    parts = [f"{abs(saved)} actions {'fewer' if saved > 0 else 'more'}" if saved else "as many actions"]
    parts.append(f"accuracy {gained:+.2f}" if gained else "the same accuracy")
    return ", ".join(parts)


def _plain(row: Row) -> dict[str, Any]:
    return {"answer": row.answer, "f1": row.f1, "actions": row.actions, "outcome": row.outcome}


def _pass(label: str, row: Row, store: Store) -> list[str]:
    ended = f"{row.actions} actions, F1 {row.f1:.2f}, {row.outcome.replace('_', ' ')}"
    return [f"{label}: {ended}", *(f"  {step:>2} {line}" for step, line in enumerate(_steps(row.shots, store), 1))]


def _steps(shots: Sequence[Shot], store: Store) -> list[str]:
    found = []
    for shot in shots:
        match shot.action, shot.result:
            case Search(query, page), Found(ids):
                found.append(f"search {query!r}{f', page {page}' if page > 1 else ''}: {len(ids)} found")
            case Read(), Opened(id, links):
                found.append(f"open {id} {_text(store, id)!r}: {len(links)} links")
            case Answer(text), _:
                found.append(f"answer {text!r}")
            case action, result:
                found.append(f"{type(action).__name__.lower()}: {type(result).__name__.lower()}")
    return found


def _text(store: Store, id: str) -> str:
    return store[id].text[:60] if id in store else ""


AGENT = "prune"
LISTED_PRUNED = 20


@verb("prune")
@place("RUN", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--unused", is_flag=True, help="What no question of its exams opened.")
@click.option("--harmful", is_flag=True, help="What harmed the questions that opened it, by evidence.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
def prune_command(place: Path, unused: bool, harmful: bool, dry_run: bool) -> Printed:
    """Take documents that training wrote out of a RUN: those its exams never opened, or that did harm there.

    Judged by the exams of the run's store as it is now beside those of its flat store. One iteration of deletions:
    `kbgym store rollback` undoes it.

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
    result: dict[str, Any] = {
        "sets": accounted.sets,
        "n": accounted.n,
        "written": len(accounted.indexes),
        "unused": len(accounted.unused),
        "harmful": len(accounted.harmful),
        "pruned": [one.id for one in chosen],
        "iteration": iteration,
    }
    lines = [f"  {one.id} {one.text[:70]!r}: {_why(one)}" for one in chosen[:LISTED_PRUNED]]
    lines += [f"  and {len(chosen) - LISTED_PRUNED} more"] if len(chosen) > LISTED_PRUNED else []
    asked = f"By {accounted.n} questions ({', '.join(accounted.sets)})"
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
    """The deletions as one committed transaction, replayed like any other."""
    folder = StoreFolder(place)
    store = folder.store()
    iteration = folder.iteration + 1
    events: list[Event] = [Began(iteration, "idle", AGENT)]
    for step, one in enumerate(chosen, 1):
        action = Delete(one.id)
        events.append(Acted(iteration, "idle", step, action, apply(store, action)))
    events += [
        Noted(iteration, "prune", {"documents": len(chosen)}),
        Ended(iteration, "idle", "done"),
        committed(iteration, folder.position, store),
    ]
    with folder.resume() as writer:
        writer.commit(events)
    return iteration
