"""`kbgym generate`: write a world of fictional people, or print one template's whole pool."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from kbgym.canonical import encode
from kbgym.cli.common import emit, output_options
from kbgym.errors import BadInput


@click.command("generate")
@click.option("--people", default=500, show_default=True, help="How many people; a tenth more are distractors.")
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option("--jobs", type=int, help="How many jobs they share; few make large indexes.  [default: a tenth of them]")
@click.option("--out", type=click.Path(path_type=Path), help="The folder to write the world to.")
@click.option("--pool", "template", metavar="TEMPLATE", help="Print this template's whole pool as JSONL instead.")
@click.option("--train", default=150, show_default=True, help="Training questions.")
@click.option("--test-in", default=100, show_default=True, help="Test questions of the trained templates.")
@click.option("--test-out", default=50, show_default=True, help="Test questions of the reserved templates.")
@click.option("--eval-in", default=20, show_default=True, help="Evaluation questions of the trained templates.")
@click.option("--eval-out", default=10, show_default=True, help="Evaluation questions of the reserved templates.")
@output_options
def command(
    people: int,
    seed: int,
    jobs: int | None,
    out: Path | None,
    template: str | None,
    train: int,
    test_in: int,
    test_out: int,
    eval_in: int,
    eval_out: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Make a world of fictional people, with questions and exact golds.

    Writes documents.jsonl, questions.jsonl and world.json, or nothing at all.

    \b
    Examples:
      kbgym generate --people 500 --seed 0 --out worlds/people
      kbgym generate --pool job-and-city > pool.jsonl
    """
    from kbgym.worlds import people as universe

    if template is not None:
        if out is not None:
            raise BadInput("--pool prints to stdout and takes no --out.")
        universe.template_named(template)
        world = universe.generate(people, seed, universe.NO_QUESTIONS, jobs)
        _print_lines(universe.pool(world, template))
        return
    if out is None:
        raise BadInput("say where to write the world with --out DIR.")
    world = universe.generate(people, seed, universe.Sizes(train, test_in, test_out, eval_in, eval_out), jobs)
    world.save(out)
    result = {
        "documents": len(world.documents),
        "questions": len(world.questions),
        "splits": world.splits,
        "hash": world.hash,
    }
    splits = ", ".join(f"{name} {count}" for name, count in world.splits.items())
    text = (
        f"{out}: {people} people, {len(world.documents)} documents, {len(world.questions)} questions ({splits}).\n"
        f"hash {world.hash}"
    )
    emit(result, as_json, quiet, text)


def _print_lines(values: Iterable[object]) -> None:
    """JSONL on stdout; a reader that stops early (`| head`) is no error."""
    try:
        for value in values:
            sys.stdout.buffer.write(encode(value) + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
