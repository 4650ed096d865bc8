"""`kbgym generate`: write a world of fictional people, or print one template's whole pool."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from kbgym.canonical import encode
from kbgym.cli.common import Printed, size_options, splits_of, verb, world_values
from kbgym.errors import BadInput


@verb("generate")
@click.option("--people", default=500, show_default=True, help="How many people; a tenth more are distractors.")
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option("--jobs", type=int, help="How many jobs they share; few make large indexes.  [default: a tenth of them]")
@click.option("--out", type=click.Path(path_type=Path), help="The folder to write the world to.")
@click.option("--hard", is_flag=True, help="Larger classes, and readers have eight actions.")
@click.option("--pool", "template", metavar="TEMPLATE", help="Print this template's whole pool as JSONL instead.")
@size_options
def command(
    people: int,
    seed: int,
    jobs: int | None,
    out: Path | None,
    template: str | None,
    hard: bool,
    **sizes: int,
) -> Printed | None:
    """Make a world of fictional people, with questions and exact golds.

    Writes documents.jsonl, questions.jsonl and world.json, or nothing at all.

    \b
    Examples:
      kbgym generate --people 500 --seed 0 --out worlds-out/w0
      kbgym generate --pool job-and-city > pool.jsonl
    """
    from kbgym.worlds import people as universe

    if template is not None:
        if out is not None:
            raise BadInput("--pool prints to stdout and takes no --out.")
        universe.template_named(template)
        world = universe.generate(people, seed, universe.NO_QUESTIONS, jobs, universe.VERSION, hard)
        _print_lines(universe.pool(world, template))
        return None
    if out is None:
        raise BadInput("say where to write the world with --out DIR.")
    world = universe.generate(people, seed, universe.Sizes(**sizes), jobs, universe.VERSION, hard)
    world.save(out)
    counts = f"{people} people, {len(world.documents)} documents, {len(world.questions)} questions"
    return world_values(world), f"{out}: {counts} ({splits_of(world)}).\nhash {world.hash}"


def _print_lines(values: Iterable[object]) -> None:
    """JSONL on stdout; a reader that stops early (`| head`) is no error."""
    try:
        for value in values:
            sys.stdout.buffer.write(encode(value) + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
