"""`kbgym import paper-universe`: the paper's own universe as a world folder."""

from __future__ import annotations

from pathlib import Path

import click

from kbgym.cli.common import Printed, splits_of, verb, world_values


@verb("paper-universe")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write the world to.")
def command(file: Path, out: Path) -> Printed:
    """Make a world from the universe FILE that the paper's authors published.

    Every gold is checked against the people the documents describe; writes the whole world or nothing.

    \b
    Example:
      kbgym import paper-universe paper-universe.json --out worlds/paper
    """
    from kbgym.worlds.people.paper import read

    world = read(file)
    world.save(out)
    counts = f"{len(world.documents)} documents, {len(world.questions)} questions"
    return world_values(world), f"{out}: {counts} ({splits_of(world)}).\nhash {world.hash}"
