"""Export transcripts and benchmarks; pack and verify submissions."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from kbgym.agents.llm.cassette import Cassette
from kbgym.api import open
from kbgym.api.submission import check, pack
from kbgym.canonical import write_lines
from kbgym.cli.common import Printed, progress, seeds_in, verb
from kbgym.errors import BadInput
from kbgym.integrations.transcripts import preferences, transcripts
from kbgym.sanitize import counted
from kbgym.training.exam import summarise
from kbgym.worlds.benchmark import GOLDS, NAMES
from kbgym.worlds.benchmark import export as export_benchmark
from kbgym.worlds.world import World


@click.group("export")
def command() -> None:
    """Export transcripts for fine-tuning, or a benchmark as a data set.

    \b
    Example:
      kbgym export transcripts runs/gpt/cassette.jsonl --out chats.jsonl
    """


@click.group("submit")
def submit() -> None:
    """Pack an exam for others to check, or verify such a file.

    \b
    Example:
      kbgym submit pack runs/r0/exams/trained-test_in.jsonl --out r0.zip
    """


@verb("benchmark", command)
@click.option("--name", type=click.Choice(list(NAMES)), default="kbgym-people-v2", show_default=True)
def benchmark_command(name: str, seeds: str, out: Path) -> Printed:
    """Write worlds of a benchmark as a data set: documents, questions, expected answers apart, and a card.

    The same name and seeds give the same bytes.

    \b
    Example:
      kbgym export benchmark --name kbgym-people-v2 --seeds 0-1 --out datasets/people
    """
    chosen = seeds_in(seeds)
    whole = export_benchmark(name, chosen, seeds, out)
    result = {"out": str(out), "benchmark": name, "seeds": list(chosen), "hash": whole}
    text = f"{out}: {name}, {counted(len(chosen), 'world')}; {GOLDS}.jsonl is apart; README.md is the card."
    return result, f"{text}\nhash {whole}"


@verb("transcripts", command)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE...")
def transcripts_command(files: tuple[Path, ...], store: str | None, world: Path | None, out: Path) -> Printed:
    """Write every pass recorded in a cassette as one line of chat messages, ready for fine-tuning.

    With --preferences the files are rows of two or more exams of one store: pairs in TRL's format, in which the right
    pass is preferred, or of two right ones the cheaper.

    \b
    Example:
      kbgym export transcripts runs/gpt/cassette.jsonl --out chats.jsonl
      kbgym export transcripts a.jsonl b.jsonl --preferences runs/r7 --out pairs.jsonl
    """
    if store is not None:
        if len(files) < 2:
            raise BadInput("preferences need the rows of at least two exams.")
        with open(store, world) as opened:
            pairs = list(preferences(opened, files))
        write_lines(out, pairs)
        return {"pairs": len(pairs), "out": str(out)}, f"{out}: {counted(len(pairs), 'pair')}."
    if len(files) > 1:
        raise BadInput("name one cassette, or the exams' store with --preferences.")
    (cassette,) = files
    if not cassette.is_file():
        raise BadInput(f"{cassette} is no cassette: there is no such file.")
    chats = list(transcripts(Cassette(cassette, record=False)))
    write_lines(out, chats)
    return {"transcripts": len(chats), "out": str(out)}, f"{out}: {counted(len(chats), 'transcript')}."


@verb("pack", submit)
@click.argument("rows", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def pack_command(rows: Path, store: str | None, world: Path | None, out: Path) -> Printed:
    """Pack an exam, its ROWS, its questions and the history of its store into one file that others can check.

    \b
    Example:
      kbgym exam runs/r0 --set test_in
      kbgym submit pack runs/r0/exams/trained-test_in.jsonl --out r0.zip
      kbgym submit verify r0.zip
    """
    run = rows.resolve().parent.parent
    if store is None and not (run / "run.json").is_file():
        raise BadInput(f"{rows} lies in no run; name the store that was examined with --store.")
    about = pack(rows, store or str(run), world, out)
    result = {"out": str(out), "header": msgspec.to_builtins(about.header), "files": len(about.files)}
    size = f"{len(about.files)} files, {out.stat().st_size:,} bytes"
    return result, f"{out}: {size}. Check it: kbgym submit verify {out}"


@verb("verify", submit)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def verify_command(file: Path, world: Path | None) -> Printed:
    """Repeat a submission without its reader: rebuild the store, repeat every action, grade every answer.

    With --world the submission must be about that very world; generate it yourself. What cannot be checked is whether
    the reader knew answers from elsewhere.

    \b
    Example:
      kbgym generate --people 500 --seed 0 --out worlds-out/w0
      kbgym submit verify r0.zip --world worlds-out/w0
    """
    expected = World.load(world).hash if world is not None else None
    with progress("checking") as tick:
        checked = check(file, expected, tick)
    header, summary = checked.header, summarise(checked.rows)
    result = {"holds": True, **msgspec.to_builtins(summary), "header": header, "is_split": checked.is_split}
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
