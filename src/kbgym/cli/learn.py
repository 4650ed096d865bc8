"""`kbgym learn`: a file of traffic, each question answered first and learnt from after, against the flat store."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import msgspec

from kbgym.analysis.stats import ratio_of_means, score_difference
from kbgym.cli.common import STORE, Printed, Tick, progress, serving_options, verb
from kbgym.cli.gating import gate_options, opened_online
from kbgym.online.asked import Questions
from kbgym.online.learning import Online
from kbgym.online.setup import Learnt, learn_traffic, read_traffic
from kbgym.trace.place import shown


@verb("learn")
@click.argument("place", metavar="STORE", type=STORE)
@click.option("--traffic", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Questions, answers.")
@gate_options
@click.option("--window", type=click.IntRange(min=1), default=50, show_default=True, help="Questions a window.")
@click.option("--strategy", help="paper or class.  [default: the run's]")
@serving_options
@click.option("--embedder", help="all-MiniLM-L6-v2, or hash for tests.  [default: the store's]")
def command(place: str, traffic: Path, window: int, **flags: Any) -> Printed:
    """Learn from traffic: answer, see the gold, edit; and compare with the frozen flat store on the same questions.

    FILE has a question a line: {"question": "...", "answers": ["..."]}. Run again, it goes on where it stopped.

    \b
    Example:
      kbgym learn runs/first --traffic traffic.jsonl --gate 20
    """
    rows = read_traffic(traffic)
    with progress("embedding") as tick:
        online = opened_online(place, flags, tick, Questions(sys.maxsize))
    with progress("learning") as tick:
        learnt = asyncio.run(_learn(online, rows, tick))
    who = f"{online.settings.reader} reads, {online.settings.curator} curates."
    result = {**report(learnt, online, window), "agents": who}
    return result, _text(shown(place), result)


async def _learn(online: Online, rows: list[Any], tick: Tick) -> list[Learnt]:
    try:
        return await learn_traffic(online, rows, tick)
    finally:
        await online.live.close()


def report(learnt: list[Learnt], online: Online, size: int) -> dict[str, Any]:
    """The prequential curve of the online store beside the flat one, and the intervals of the difference."""
    f1, flat = [one.f1 for one in learnt], [one.flat_f1 for one in learnt]
    actions, flat_actions = [float(one.actions) for one in learnt], [float(one.flat_actions) for one in learnt]
    windows = [(start, learnt[start : start + size]) for start in range(0, len(learnt), size)]
    return {
        "n": len(learnt),
        **_means(learnt),
        "f1_difference": msgspec.to_builtins(score_difference(f1, flat)),
        "rho": msgspec.to_builtins(ratio_of_means(actions, flat_actions)),
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
