"""`kbgym export-benchmark`: worlds of a named benchmark as a data set with a card."""

from __future__ import annotations

from pathlib import Path

import click

from kbgym.cli.common import Printed, seeds_in, verb
from kbgym.worlds.people.benchmark import GOLDS, NAMES, export


@verb("export-benchmark")
@click.option("--name", type=click.Choice(list(NAMES)), default="kbgym-people-v2", show_default=True)
@click.option("--seeds", default="0", show_default=True, help="Seeds, such as 0,1,2 or 0-4.")
@click.option("--parquet", is_flag=True, help="Parquet beside JSONL; needs kbgym[datasets].")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
def command(name: str, seeds: str, parquet: bool, out: Path) -> Printed:
    """Write worlds of a benchmark as a data set: documents, questions, golds apart, and a card.

    The same name and seeds give the same bytes.

    \b
    Example:
      kbgym export-benchmark --name kbgym-people-v2 --seeds 0-1 --out datasets/people
    """
    chosen = seeds_in(seeds)
    whole = export(name, chosen, seeds, out, parquet)
    result = {"out": str(out), "benchmark": name, "seeds": list(chosen), "hash": whole}
    text = f"{out}: {name}, {len(chosen)} worlds; {GOLDS}.jsonl apart from the questions; README.md is the card."
    return result, f"{text}\nhash {whole}"
