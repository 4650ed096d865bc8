"""`kbgym import paper-universe`: the paper's own universe as a world folder."""

from __future__ import annotations

from pathlib import Path

import click

from kbgym.cli.common import emit, output_options


@click.command("paper-universe")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write the world to.")
@output_options
def command(file: Path, out: Path, as_json: bool, quiet: bool) -> None:
    """Make a world from the universe FILE that the paper's authors published.

    Every gold is checked against the people the documents describe; writes the whole world or nothing.

    \b
    Example:
      kbgym import paper-universe paper-universe.json --out worlds/paper
    """
    from kbgym.worlds.people.paper import read

    world = read(file)
    world.save(out)
    result = {
        "documents": len(world.documents),
        "questions": len(world.questions),
        "splits": world.splits,
        "hash": world.hash,
    }
    splits = ", ".join(f"{name} {count}" for name, count in world.splits.items())
    text = f"{out}: {len(world.documents)} documents, {len(world.questions)} questions ({splits}).\nhash {world.hash}"
    emit(result, as_json, quiet, text)
