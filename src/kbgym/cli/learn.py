"""`kbgym learn`: a file of traffic, each question answered first and learnt from after, against the flat store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.analysis.stats import Interval, ratio_of_means, score_difference
from kbgym.cli.common import STORE, Tick, emit, output_options, progress, serving_options, serving_settings
from kbgym.online.learning import Online
from kbgym.online.setup import Learnt, learn_traffic, open_online, read_traffic
from kbgym.protocol.gate import MARGIN
from kbgym.trace.place import shown


@click.command("learn")
@click.argument("place", metavar="STORE", type=STORE)
@click.option("--traffic", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Questions, answers.")
@click.option("--gate", type=click.IntRange(min=0), default=0, help="Admit edits only after re-asking N questions.")
@click.option("--margin", type=float, default=MARGIN, show_default=True, help="By how much F1 may fall at the gate.")
@click.option("--evidence", type=int, default=0, help="How many questions must be able to tell what edits do.")
@click.option("--held-out", type=click.Path(path_type=Path, dir_okay=False), help="Questions for the gate.")
@click.option("--window", type=click.IntRange(min=1), default=50, show_default=True, help="Questions a window.")
@click.option("--strategy", help="paper or class.  [default: the run's]")
@serving_options
@click.option("--embedder", help="all-MiniLM-L6-v2, or hash for tests.  [default: the store's]")
@output_options
def command(
    place: str,
    traffic: Path,
    gate: int,
    margin: float,
    evidence: int,
    held_out: Path | None,
    window: int,
    strategy: str | None,
    embedder: str | None,
    as_json: bool,
    quiet: bool,
    **who: Any,
) -> None:
    """Learn from traffic: answer, see the gold, edit; and compare with the frozen flat store on the same questions.

    FILE has a question a line: {"question": "...", "answers": ["..."]}. Run again, it goes on where it stopped.

    \b
    Example:
      kbgym learn runs/first --traffic traffic.jsonl --gate 20
    """
    rows = read_traffic(traffic)
    settings, trusted = serving_settings(place, {**who, "strategy": strategy, "embedder": embedder})
    with progress("embedding", quiet or as_json) as tick:
        online = open_online(place, settings, embedder, gate, margin, evidence, held_out, tick, trusted)
    with progress("learning", quiet or as_json) as tick:
        learnt = asyncio.run(_learn(online, rows, tick))
    result = report(learnt, online, window)
    emit(result, as_json, quiet, _text(shown(place), result))


async def _learn(online: Online, rows: list[Any], tick: Tick) -> list[Learnt]:
    try:
        return await learn_traffic(online, rows, tick)
    finally:
        await online.owner.close()


def report(learnt: list[Learnt], online: Online, size: int) -> dict[str, Any]:
    """The prequential curve of the online store beside the flat one, and the intervals of the difference."""
    f1, flat = [one.f1 for one in learnt], [one.flat_f1 for one in learnt]
    actions, flat_actions = [float(one.actions) for one in learnt], [float(one.flat_actions) for one in learnt]
    curve = []
    for start in range(0, len(learnt), size):
        some = learnt[start : start + size]
        curve.append(
            {
                "first": start + 1,
                "last": start + len(some),
                "f1": _mean([one.f1 for one in some]),
                "f1_flat": _mean([one.flat_f1 for one in some]),
                "actions": _mean([one.actions for one in some]),
                "actions_flat": _mean([one.flat_actions for one in some]),
            }
        )
    return {
        "n": len(learnt),
        "f1": _mean(f1),
        "f1_flat": _mean(flat),
        "f1_difference": _interval(score_difference(f1, flat)),
        "actions": _mean(actions),
        "actions_flat": _mean(flat_actions),
        "rho": _interval(ratio_of_means(actions, flat_actions)),
        "windows": curve,
        "admitted": online.admitted,
        "rolled_back": online.refused,
        "withdrawn": online.withdrawn,
        "documents": len(online.owner.store),
        "links": online.owner.store.links,
        "iteration": online.owner.iteration,
    }


def _mean(values: list[float] | list[int]) -> float:
    return round(sum(values) / len(values), 4)


def _interval(interval: Interval) -> dict[str, float]:
    found: dict[str, float] = msgspec.to_builtins(interval)
    return found


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
