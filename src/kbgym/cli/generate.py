"""`kbgym generate` and `kbgym examples`: worlds of fictional people, and documents to try kbgym on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kbgym
from kbgym.canonical import encode
from kbgym.cli.common import Printed, size_options, splits_of, verb, world_values
from kbgym.cli.settings import options
from kbgym.errors import BadInput

if TYPE_CHECKING:
    from kbgym.worlds.splits import Sizes
    from kbgym.worlds.world import World

_DIALS = ("depth", "breadth", "passage", "time", "sources", "rounds", "wordings")


@verb("generate")
@size_options
@options(*_DIALS, "round", "hard")
def generate_command(
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


# -- examples ---------------------------------------------------------------------------------------------------------

EXAMPLES = {
    "harbour": "Notes of a harbour office in Markdown, text and CSV: 7 files and 20 questions.",
    "skarn": "The handbook of an observatory in linked Markdown pages: 61 files and 88 questions.",
}


@verb("examples")
@click.argument("action", type=click.Choice(["copy"]), required=False)
@click.argument("name", type=click.Choice(list(EXAMPLES)), required=False)
def examples_command(action: str | None, name: str | None, out: Path | None) -> Printed:
    """List the examples, or copy one into a new folder.

    \b
    Example:
      kbgym examples copy harbour
      cd harbour
      kbgym init notes --questions questions.csv
    """
    if action is None:
        return {"examples": list(EXAMPLES)}, [f"{one:9} {text}" for one, text in EXAMPLES.items()]
    if name is None:
        raise BadInput(f"name the example to copy: {', '.join(EXAMPLES)}.")
    target = out or Path(name)
    if target.exists():
        raise BadInput(f"{target} exists already; name another folder with --out.")
    shutil.copytree(_folder() / name, target)
    (documents,) = (path for path in target.iterdir() if path.is_dir())
    (questions,) = target.glob("questions.*")
    lines = [
        f"Copied to {target}. Next:",
        f"  cd {target}",
        f"  kbgym init {documents.name} --questions {questions.name}",
    ]
    return {"out": str(target), "documents": str(documents), "questions": str(questions)}, lines


def _folder() -> Path:
    """Return the folder of the examples: in the installed package, else in the source tree."""
    package = Path(kbgym.__file__).parent
    installed = package / "examples"
    return installed if installed.is_dir() else package.parents[1] / "examples"
