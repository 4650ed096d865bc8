"""`kbgym generate`: write a world of fictional people, or print one template's whole pool."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbgym.canonical import encode
from kbgym.cli.common import Printed, size_options, splits_of, verb, world_values
from kbgym.cli.settings import options
from kbgym.errors import BadInput

if TYPE_CHECKING:
    from kbgym.worlds.splits import Sizes
    from kbgym.worlds.world import World

_DIALS = ("depth", "breadth", "passage", "time", "sources", "rounds", "wordings")


@verb("generate")
@click.option("--people", default=500, show_default=True, help="Number of people; 10% more are distractors.")
@click.option("--seed", default=0, show_default=True, help="Seed; output is deterministic.")
@click.option("--out", type=click.Path(path_type=Path), help="The folder to write the world to.")
@click.option("--benchmark", type=click.Choice(["2", "3"]), default="2", show_default=True, help="Benchmark version.")
@click.option("--pool", "template", metavar="TEMPLATE", help="Print this template's whole pool as JSONL instead.")
@size_options
@options(*_DIALS, "round", "hard")
def command(
    people: int,
    seed: int,
    out: Path | None,
    template: str | None,
    hard: bool | None,
    benchmark: str,
    round: int | None,
    **given: Any,
) -> Printed | None:
    """Make a world of fictional people, with questions and exact golds.

    Writes documents.jsonl, questions.jsonl and world.json, or nothing at all.

    \b
    Examples:
      kbgym generate --people 500 --seed 0 --out worlds-out/w0
      kbgym generate --pool job-and-city > pool.jsonl
      kbgym generate --benchmark 3 --set passage=8 --out worlds-out/v3
    """
    from kbgym.worlds.kinds import kind_of
    from kbgym.worlds.splits import Sizes

    dials = {name: value for name in _DIALS if (value := given.pop(name)) is not None}
    asked = Sizes(**given) if template is None else Sizes(0, 0, 0, 0, 0)
    if (template is None) == (out is None):
        raise BadInput("say where to write the world with --out DIR, or what to print with --pool; not both.")
    if benchmark == "2":
        world = _v2(people, seed, asked, bool(hard), dials)
    else:
        world = _v3(people, seed, asked, bool(hard), dials, round or 0)
    if out is None:
        _print_lines(kind_of(world).pool(world, template or ""))
        return None
    world.save(out)
    counts = f"{people} people, {len(world.documents)} documents, {len(world.questions)} questions"
    return world_values(world), f"{out}: {counts} ({splits_of(world)}).\nhash {world.hash}"


def _v2(people: int, seed: int, sizes: Sizes, hard: bool, dials: dict[str, Any]) -> World:
    from kbgym.worlds.people import generate

    if dials:
        raise BadInput(f"{', '.join(dials)}: only --benchmark 3 has dials.")
    return generate(people, seed, sizes, hard=hard)


def _v3(people: int, seed: int, sizes: Sizes, hard: bool, dials: dict[str, Any], rounds: int) -> World:
    from kbgym.worlds.people3 import DEFAULT_SIZES, Dials, generate
    from kbgym.worlds.updates import updated

    if hard:
        raise BadInput("hard worlds are of benchmark 2; benchmark 3 has dials.")
    world = generate(people, seed, DEFAULT_SIZES if sizes == type(sizes)() else sizes, Dials(**dials))
    return updated(world, rounds) if rounds else world


def _print_lines(values: Iterable[object]) -> None:
    """Print JSON lines to stdout; a reader that stops early (`| head`) is not an error."""
    try:
        for value in values:
            sys.stdout.buffer.write(encode(value) + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
