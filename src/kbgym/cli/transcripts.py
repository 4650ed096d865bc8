"""`kbgym transcripts`: what was played, as chats, as preferences or as ATIF trajectories."""

from __future__ import annotations

from pathlib import Path

import click

from kbgym import __version__
from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.export import export
from kbgym.api import open
from kbgym.canonical import write_lines
from kbgym.cli.common import Printed, verb
from kbgym.errors import BadInput
from kbgym.integrations.trl import preferences, trajectories


@verb("transcripts")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE...")
@click.option(
    "--preferences", "store", metavar="STORE", help="The FILEs are exams of this store: write pairs of passes."
)
@click.option(
    "--trajectories", "passes", metavar="STORE", help="The FILEs are exams of this store: write them as ATIF."
)
@click.option("--atif", is_flag=True, help="A cassette's passes as ATIF trajectories instead of chats.")
@click.option("--world", type=click.Path(path_type=Path), help="Where the store's questions are.  [a run's own]")
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The JSONL file to write.")
def command(
    files: tuple[Path, ...], store: str | None, passes: str | None, atif: bool, world: Path | None, out: Path
) -> Printed:
    """Write every pass recorded in a cassette as one line of chat messages, ready for fine-tuning.

    With --preferences the files are rows of two or more exams of one store; where two passes on a question differ, the
    right one, or of two right ones the cheaper, is preferred, in TRL's format. With --trajectories every pass of the
    exams is written as an ATIF trajectory, whoever read.

    \b
    Example:
      kbgym transcripts runs/gpt/cassette.jsonl --out chats.jsonl
      kbgym transcripts a.jsonl b.jsonl --preferences runs/r7 --out pairs.jsonl
      kbgym transcripts a.jsonl --trajectories runs/r7 --out atif.jsonl
    """
    if passes is not None:
        if store is not None:
            raise BadInput("--preferences and --trajectories write different files; name one of them.")
        with open(passes, world) as opened:
            found = list(trajectories(opened, files, __version__))
        write_lines(out, found)
        return {"trajectories": len(found), "out": str(out)}, f"{out}: {len(found)} trajectories."
    if store is not None:
        if len(files) < 2:
            raise BadInput("preferences need the rows of at least two exams.")
        with open(store, world) as opened:
            pairs = list(preferences(opened, files))
        write_lines(out, pairs)
        return {"pairs": len(pairs), "out": str(out)}, f"{out}: {len(pairs)} pairs."
    if len(files) > 1:
        raise BadInput("name one cassette, or the exams' store with --preferences or --trajectories.")
    (cassette,) = files
    if not cassette.is_file():
        raise BadInput(f"{cassette} is no cassette: there is no such file.")
    count = export(Cassette(cassette, record=False), out, __version__ if atif else None)
    return {"transcripts": count, "out": str(out)}, f"{out}: {count} transcripts."
