"""`kbgym store prune`: deletion of documents written in training that have no benefit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kbgym.analysis.index_use import IndexUse, account
from kbgym.api import open
from kbgym.cli.common import Printed, verb
from kbgym.cli.settings import place
from kbgym.errors import BadInput
from kbgym.gym.actions import Delete
from kbgym.gym.environment import apply
from kbgym.trace.events import Acted, Began, Ended, Event, Noted
from kbgym.trace.folder import StoreFolder
from kbgym.trace.replay import committed

AGENT = "prune"
LISTED_PRUNED = 20


@verb("prune")
@place("RUN", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--unused", is_flag=True, help="Documents that no exam question opened.")
@click.option("--harmful", is_flag=True, help="Documents that harmed the questions that opened them.")
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
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
    """Delete the documents in one transaction and return its iteration."""
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
