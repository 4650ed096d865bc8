"""`kbgym submit` packs an exam into one file; `kbgym verify-submission` does it again and grades it again."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from kbgym.api.submission import check, pack
from kbgym.cli.common import Printed, progress, verb
from kbgym.errors import BadInput
from kbgym.training.exam import summarise
from kbgym.worlds.world import World


@verb("submit")
@click.argument("rows", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--store", help="The store that was examined.  [default: the run that holds the rows]")
@click.option("--world", type=click.Path(path_type=Path), help="Where the questions are.  [a run's own]")
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The file to write.")
def command(rows: Path, store: str | None, world: Path | None, out: Path) -> Printed:
    """Pack an exam, its ROWS, its questions and the history of its store into one file that others can check.

    \b
    Example:
      kbgym exam runs/r0 --set test_in
      kbgym submit runs/r0/exams/trained-test_in.jsonl --out r0.zip
      kbgym verify-submission r0.zip
    """
    run = rows.resolve().parent.parent
    if store is None and not (run / "run.json").is_file():
        raise BadInput(f"{rows} lies in no run; name the store that was examined with --store.")
    about = pack(rows, store or str(run), world, out)
    result = {"out": str(out), "header": msgspec.to_builtins(about.header), "files": len(about.files)}
    return (
        result,
        f"{out}: {len(about.files)} files, {out.stat().st_size:,} bytes. Check it: kbgym verify-submission {out}",
    )


@verb("verify-submission")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--world", type=click.Path(path_type=Path), help="The world it must be about, as you have it yourself.")
def verify_command(file: Path, world: Path | None) -> Printed:
    """Do a submission again without its reader: rebuild the store, repeat every action, grade every answer.

    With --world the submission must be about that very world; generate it yourself. What cannot be checked is whether
    the reader knew answers from elsewhere.

    \b
    Example:
      kbgym generate --people 500 --seed 0 --out worlds-out/w0
      kbgym verify-submission r0.zip --world worlds-out/w0
    """
    expected = World.load(world).hash if world is not None else None
    with progress("checking") as tick:
        checked = check(file, expected, tick)
    header, summary = checked.header, summarise(checked.rows)
    result = {
        "holds": True,
        **msgspec.to_builtins(summary),
        "header": msgspec.to_builtins(header),
        "is_split": checked.is_split,
    }
    asked = f"the split {header.set}" if checked.is_split else f"questions of its own, called {header.set}"
    text = (
        f"{file} holds: {header.agent} on {asked} of world {header.world[:12]}, store {header.store[:12]} "
        f"(arm {header.arm}, iteration {header.iteration}).\n"
        f"n = {summary.n}: F1 {summary.f1:.3f}, EM {summary.em:.3f}, {summary.actions:.2f} actions and "
        f"{summary.characters:,.0f} characters read a question; every row came out the same."
    )
    if expected is None:
        text += "\nThe world is the submission's own; name yours with --world to know that it is the same."
    return result, text
