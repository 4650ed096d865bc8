"""`kbgym transcripts`: what a model played, as chat-format JSONL."""

from __future__ import annotations

from pathlib import Path

import click

from kbgym.cli.common import Printed, verb
from kbgym.errors import BadInput
from kbgym.llm.cassette import Cassette
from kbgym.llm.export import export


@verb("transcripts")
@click.argument("cassette", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The JSONL file to write.")
def command(cassette: Path, out: Path) -> Printed:
    """Write every pass recorded in a CASSETTE as one line of chat messages, ready for fine-tuning.

    \b
    Example:
      kbgym transcripts runs/gpt/cassette.jsonl --out chats.jsonl
    """
    if not cassette.is_file():
        raise BadInput(f"{cassette} is no cassette: there is no such file.")
    count = export(Cassette(cassette, record=False), out)
    return {"transcripts": count, "out": str(out)}, f"{out}: {count} transcripts."
