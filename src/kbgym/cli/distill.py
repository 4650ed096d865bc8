"""`kbgym distill`: worlds and a teacher in, samples for teaching a small model out."""

from __future__ import annotations

from pathlib import Path

import click

from kbgym.canonical import write_lines, write_whole
from kbgym.cli.common import Printed, progress, verb
from kbgym.errors import BadInput


@verb("distill")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="A folder; a file a world."
)
@click.option("--worlds", default=8, show_default=True, type=click.IntRange(min=1), help="How many worlds.")
@click.option("--seed", default=1000, show_default=True, help="The first world's; examine on others.")
@click.option("--people", default=300, show_default=True, help="How many people a world has.")
@click.option("--questions", default=700, show_default=True, help="Asked of a world, on each of its three stores.")
@click.option("--teacher", default="reference", show_default=True, help="Who reads: reference or general.")
@click.option("--role", default="reader", show_default=True, type=click.Choice(["reader", "curator"]), help="To teach.")
def command(out: Path, worlds: int, seed: int, people: int, questions: int, teacher: str, role: str) -> Printed:
    """Write the passes of a teacher as samples, exactly as the agent `small` is shown a pass and writes.

    Every world has invented words of its own. Its questions are asked on the flat store and on two that the reference
    agents trained; only passes that ended right are kept. For a curator a store is trained by `class`, and a sample is
    the work on one index_task of its agenda. Worlds that have a file already are not played again.

    \b
    Example:
      kbgym distill --worlds 1 --people 60 --questions 40 --out samples
      kbgym distill --role curator --worlds 1 --people 30 --out index_tasks
    """
    from kbgym.api.distill import distill, distill_curator

    if teacher not in ("reference", "general"):
        raise BadInput(f"there is no teacher {teacher!r}; use reference or general.")
    out.mkdir(parents=True, exist_ok=True)
    kept = 0
    with progress("distilling") as tick:
        for number in range(worlds):
            file = out / f"{seed + number}.jsonl"
            if not file.exists():
                made = seed + number, people
                samples = list(distill_curator(*made) if role == "curator" else distill(*made, questions, teacher))
                with write_whole(file) as scratch:
                    write_lines(scratch, samples)
            kept += file.read_bytes().count(b"\n")
            tick(number + 1, worlds, f"{kept:,} samples")
    return {"samples": kept, "out": str(out)}, f"{out}: {kept:,} samples of what ended right."
