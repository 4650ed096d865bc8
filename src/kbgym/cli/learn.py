"""`kbgym learn`: a file of traffic, each question answered first and learnt from after, against the flat store."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Hashable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import msgspec

from kbgym.analysis.gradient import shared_keys
from kbgym.analysis.statistics import Sampled, difference, ratio
from kbgym.api import open
from kbgym.cli.common import STORE, Printed, progress, serving_options, verb
from kbgym.cli.gating import gate_options, opened_online
from kbgym.cli.spending import spending_options
from kbgym.progress import ProgressCallback
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.question_log import Questions
from kbgym.serving.learning.setup import Learnt, Traffic, learn_traffic, read_traffic
from kbgym.trace.url import shown


@verb("learn")
@click.argument("place", metavar="STORE", type=STORE)
@click.option("--traffic", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Questions, answers.")
@gate_options
@click.option("--window", type=click.IntRange(min=1), default=50, show_default=True, help="Questions a window.")
@click.option("--strategy", help="paper or class.  [default: the run's]")
@serving_options
@spending_options
@click.option("--embedder", help="all-MiniLM-L6-v2, or hash for tests.  [default: the store's]")
def command(place: str, traffic: Path, window: int, **flags: Any) -> Printed:
    """Learn from traffic: answer, see the gold, edit; and compare with the frozen flat store on the same questions.

    FILE has a question a line: {"question": "...", "answers": ["..."]}. Run again, it goes on where it stopped.

    \b
    Example:
      kbgym learn runs/first --traffic traffic.jsonl --gate 20
    """
    rows = read_traffic(traffic)
    with contextlib.ExitStack() as held:
        with progress("embedding") as tick:
            online = held.enter_context(opened_online(place, flags, len(rows), tick, Questions(sys.maxsize)))
        with progress("learning") as tick:
            learnt = asyncio.run(_learn(online, rows, tick))
    who = f"{online.settings.reader} reads, {online.settings.curator} curates."
    result = {**report(learnt, _keys(place, rows), online, window), "agents": who}
    return result, _text(shown(place), result)


async def _learn(online: Online, rows: list[Any], tick: ProgressCallback) -> list[Learnt]:
    try:
        return await learn_traffic(online, rows, tick)
    finally:
        await online.live.close()


def _keys(place: str, rows: Sequence[Traffic]) -> list[Sequence[Hashable]]:
    """What each question has in common with others, by its line or by the store's world; else its own text."""
    with open(place) as opened:
        known = shared_keys(opened.world) if opened.world else {}
    return [row.keys or known.get(row.question) or (row.question,) for row in rows]


def report(learnt: list[Learnt], keys: Sequence[Sequence[Hashable]], online: Online, size: int) -> dict[str, Any]:
    """The prequential curve of the online store beside the flat one, and the intervals of the difference."""
    scores = Sampled([one.f1 for one in learnt], [one.flat_f1 for one in learnt], keys)
    actions = Sampled([one.actions for one in learnt], [one.flat_actions for one in learnt], keys)
    windows = [(start, learnt[start : start + size]) for start in range(0, len(learnt), size)]
    return {
        "n": len(learnt),
        **_means(learnt),
        "f1_difference": msgspec.to_builtins(difference([scores], scores=True).interval),
        "rho": msgspec.to_builtins(ratio([actions]).interval),
        "windows": [{"first": at + 1, "last": at + len(some), **_means(some)} for at, some in windows],
        "admitted": online.admitted,
        "rolled_back": online.refused,
        "withdrawn": online.withdrawn,
        "documents": len(online.live.store),
        "links": online.live.store.links,
        "iteration": online.live.iteration,
    }


def _means(learnt: list[Learnt]) -> dict[str, float]:
    fields = {"f1": "f1", "f1_flat": "flat_f1", "actions": "actions", "actions_flat": "flat_actions"}
    return {name: round(fmean(getattr(one, field) for one in learnt), 4) for name, field in fields.items()}


def _text(place: str, result: dict[str, Any]) -> str:
    lines = [f"{'questions':>12} {'F1':>7} {'flat':>7} {'actions':>9} {'flat':>7}"]
    for row in result["windows"]:
        span = f"{row['first']} to {row['last']}"
        lines.append(
            f"{span:>12} {row['f1']:>7.3f} {row['f1_flat']:>7.3f} {row['actions']:>9.2f} {row['actions_flat']:>7.2f}"
        )
    gain, rho = result["f1_difference"], result["rho"]
    return "\n".join(
        [
            *lines,
            f"{place}: {result['n']} questions, each answered before it was learnt from. "
            f"F1 {result['f1']:.3f} against {result['f1_flat']:.3f} of the flat store, "
            f"{gain['value']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}]; "
            f"actions {rho['value']:.2f} times [{rho['low']:.2f}, {rho['high']:.2f}].",
            f"{result['admitted']} passes were admitted and {result['rolled_back']} rolled back, "
            f"{result['withdrawn']} documents withdrawn; "
            f"the store has {result['documents']:,} documents and {result['links']:,} links.",
        ]
    )
