"""`kbgym learn` and `kbgym store corrections`: learning from traffic, the agenda, and corrections."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import msgspec

from kbgym.api import open
from kbgym.api.factory import agenda_for
from kbgym.cli import read_table
from kbgym.cli.common import STORE, Printed, progress, verb
from kbgym.cli.serve import opened_online, serving_options
from kbgym.cli.settings import place
from kbgym.cli.spending import Spending
from kbgym.errors import BadInput
from kbgym.serving.learning.agenda import AgendaFollower
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.question_log import QuestionLog
from kbgym.serving.learning.report import digest, learning_of, standing
from kbgym.serving.learning.setup import StreamRow, curate_idle, learn_traffic, read_traffic
from kbgym.trace import shown
from kbgym.trace.corrections import Corrections
from kbgym.trace.replay import replaying
from kbgym.training.run import Settings

T = TypeVar("T")


@verb("learn")
@place("STORE", type=STORE)
@serving_options
def command(
    place: str, traffic: Path | None, agenda: bool, idle: bool, as_digest: bool, budget: int, window: int, **flags: Any
) -> Printed:
    """Learn from traffic, list the agenda of a STORE, or work it off.

    A traffic file has one question per line: {"question": "...", "answers": ["..."]}. Each is answered before its
    expected answer is seen, and compared with the frozen flat store. Run the command again to resume.

    \b
    Example:
      kbgym learn runs/first --traffic traffic.jsonl --gate 20
      kbgym learn runs/first --agenda
      kbgym learn runs/first --idle --budget 120
      kbgym learn runs/first --report
    """
    if (traffic is not None) + agenda + idle + as_digest != 1:
        raise BadInput("choose one of --traffic FILE, --agenda, --idle and --report.")
    if as_digest:
        return _digest(place)
    if traffic is not None:
        return _learn_from(place, traffic, window, flags)
    return _agenda(place) if agenda else _work_off(place, budget, flags)


def _learn_from(place: str, traffic: Path, window: int, flags: dict[str, Any]) -> Printed:
    rows, spending = read_traffic(traffic), Spending(flags)
    # Every question is also asked of the flat store, and the gate repeats passes.
    cost = (len(rows), len(rows) * (1 + flags["gate"]))
    opened = opened_online(place, flags, spending, *cost, questions=QuestionLog(sys.maxsize))
    with opened as online, progress("learning") as tick:
        learnt = asyncio.run(_closing(online, learn_traffic(online, rows, tick)))
    who = f"{online.settings.reader} reads, {online.settings.curator} curates."
    result = {**report(learnt, online, window), "agents": who}
    lines = [f"{'questions':>12} {'F1':>7} {'flat':>7} {'actions':>9} {'flat':>7}"]
    for row in result["windows"]:
        scores = "{f1:>7.3f} {f1_flat:>7.3f} {actions:>9.2f} {actions_flat:>7.2f}".format(**row)
        lines.append(f"{'{first} to {last}'.format(**row):>12} {scores}")
    text = (
        "{place}: {n} questions, each answered before it was learnt from. F1 {f1:.3f} and {actions:.2f} actions; on "
        "the flat store {f1_flat:.3f} and {actions_flat:.2f}.\n{admitted} passes were admitted and {rolled_back} "
        "rolled back; the store has {documents:,} documents and {links:,} links."
    )
    return result, "\n".join([*lines, text.format(place=shown(place), **result)])


async def _closing(online: Online, work: Awaitable[T]) -> T:
    try:
        return await work
    finally:
        await online.live.close()


def report(learnt: list[StreamRow], online: Online, size: int) -> dict[str, Any]:
    """Return the means of the served and of the frozen flat store, in all and by window."""
    windows = [(start, learnt[start : start + size]) for start in range(0, len(learnt), size)]
    return {
        "n": len(learnt),
        **_means(learnt),
        "windows": [{"first": at + 1, "last": at + len(some), **_means(some)} for at, some in windows],
        "documents": len(online.live.store),
        "links": online.live.store.links,
        **_state(online),
    }


def _state(online: Online) -> dict[str, int]:
    return {"admitted": online.admitted, "rolled_back": online.refused, "iteration": online.live.iteration}


def _means(learnt: list[StreamRow]) -> dict[str, float]:
    fields = {"f1": "f1", "f1_flat": "flat_f1", "actions": "actions", "actions_flat": "flat_actions"}
    return {name: round(fmean(getattr(one, field) for one in learnt), 4) for name, field in fields.items()}


def _digest(place: str) -> Printed:
    questions, corrections = QuestionLog(), Corrections()
    with open(place) as opened:
        found = learning_of(questions, corrections, opened.place.store(watch=replaying([questions, corrections])))
    return msgspec.to_builtins(found), digest(shown(place), found).splitlines()


@verb("corrections")
@place("STORE", type=STORE)
def corrections_command(place: str) -> Printed:
    """List the current corrections and aliases that people taught a STORE.

    A correction is marked if its superseded documents have changed since: check if it is still needed.

    \b
    Example:
      kbgym store corrections runs/first
    """
    corrections = Corrections()
    with open(place) as opened:
        found = standing(corrections, opened.place.store(watch=replaying([corrections])))
    lines = [
        f"{one.lesson.iteration:>5} {one.lesson.kind:<10} [{one.lesson.document}] {one.text} ({one.lesson.by})"
        + (f"; changed since: {', '.join(one.changed)}" if one.changed else "")
        for one in found
    ]
    return {"corrections": msgspec.to_builtins(found)}, lines or [f"{shown(place)} holds no corrections."]


_WORDS: dict[str, str] = read_table("texts.toml")["agenda"]


def _agenda(place: str) -> Printed:
    with open(place) as opened:
        desk = AgendaFollower(agenda_for(opened.settings, opened.world))
        items = desk.items(opened.place.store(watch=replaying([desk])))
    counts = {what: sum(item.what == what for item in items) for what in _WORDS}
    lines = []
    for item in items:
        key = f"{item.kind} {item.value}" + (f", {item.then}" if item.then else "")
        index = f" [{item.index}]" if item.index else ""
        known = f", {item.known} documents {'changed' if item.what == 'changed' else 'known'}" if item.known else ""
        lines.append(f"{_WORDS[item.what]:<28} {key}{index}{known}")
    return {"items": items, "counts": counts}, "\n".join(lines) or f"{opened.name}: nothing is open."


def _work_off(place: str, budget: int, flags: dict[str, Any]) -> Printed:
    lessons, spending = -(-budget // Settings().backward_budget), Spending(flags)
    with opened_online(place, flags, spending, lessons, lessons * (1 + flags["gate"]), agenda=True) as online:
        live = online.live
        documents, links = len(live.store), live.store.links
        with progress("curating") as tick:
            passes, actions = asyncio.run(_closing(online, curate_idle(online, budget, tick)))
    result = {
        "passes": passes,
        "actions": actions,
        **_state(online),
        "documents_added": len(live.store) - documents,
        "links_added": live.store.links - links,
        "open": len(online.agenda.items(live.store)) if online.agenda else 0,
    }
    text = (
        f"{shown(place)}: {passes} idle passes, {actions} actions; {result['documents_added']} documents and "
        f"{result['links_added']} links more, {online.refused} passes rolled back; {result['open']} things stay open."
    )
    return result, text
