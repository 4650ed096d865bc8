"""`kbgym import corpus`: your own files as a world, and later as the same world brought up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from kbgym.cli.common import emit, output_options, progress
from kbgym.errors import BadInput
from kbgym.protocol.reimport import Reimport, reimport
from kbgym.worlds.corpus.build import Options
from kbgym.worlds.corpus.make import Made, load_old, make, repeated, replace_world

SHOWN = 10


@click.command("corpus")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--questions", type=click.Path(path_type=Path), help="Questions and answers: CSV or JSONL.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write the world to.")
@click.option(
    "--on-error",
    type=click.Choice(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="What to do when a file cannot be read: import nothing, or leave it out and name it.",
)
@click.option("--links", is_flag=True, help="Wiki links and links between the files become links of the store.")
@click.option(
    "--code", type=click.Choice(["skip", "keep"]), default="skip", show_default=True, help="Code blocks, one each."
)
@click.option("--language", default="en", show_default=True, help="What the texts are written in, for splitting.")
@click.option("--seed", default=0, show_default=True, help="Decides the splits where the questions give none.")
@click.option("--update", is_flag=True, help="Bring the world at --out up to date; unchanged sentences keep their ids.")
@click.option("--store", type=click.Path(path_type=Path), help="With --update: a run or store that follows as well.")
@output_options
def command(
    paths: tuple[Path, ...],
    questions: Path | None,
    out: Path,
    on_error: Literal["refuse", "skip"],
    links: bool,
    code: Literal["skip", "keep"],
    language: str,
    seed: int,
    update: bool,
    store: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Make a world from your own documents: PATHS are files, or folders of Markdown, text, HTML, JSONL and CSV files.

    Every document is one sentence with the title and section it needs; file and place are kept as its source. A table's
    row is one sentence. Writes the whole world or nothing.

    \b
    Example:
      kbgym import corpus examples/harbour/notes --questions examples/harbour/questions.csv --out worlds/harbour
      kbgym import corpus examples/harbour/notes --out worlds/harbour --update --store runs/harbour
    """
    if store is not None and not update:
        raise BadInput("--store needs --update: a new world has no store yet.")
    old = load_old(out) if update else None
    with progress("reading", quiet or as_json) as tick:
        made = make(paths, questions, Options(language, links, code, on_error), seed, old, tick)
    if old is None:
        made.world.save(out)
    else:
        replace_world(old, made.world, out)
    followed = reimport(store, made.world) if store else None
    emit(_result(made, followed), as_json, quiet, "\n".join(_text(out, made, store, followed)))


def _result(made: Made, followed: Reimport | None) -> dict[str, Any]:
    world, corpus = made.world, made.corpus
    result: dict[str, Any] = {
        "documents": len(world.documents),
        "questions": len(world.questions),
        "splits": world.splits,
        "hash": world.hash,
        "files": corpus.files,
        "ignored": corpus.ignored,
        "skipped": corpus.skipped,
        "code_blocks": corpus.code_blocks,
        "long_sentences": corpus.long_sentences,
        "repeated": repeated(world.documents),
        "links": sum(len(document.links) for document in world.documents),
        "dead_links": corpus.dead_links,
        "duplicates": made.questions.duplicates,
        "leaks": made.questions.leaks,
    }
    if made.changed is not None:
        changed = made.changed
        result["changes"] = {
            "added": [document.id for document in changed.added],
            "edited": [document.id for document in changed.edited],
            "removed": changed.removed,
            "relinked": [document.id for document in changed.relinked],
            "moved": len(changed.moved),
            "lost_supports": made.lost_supports,
        }
    if followed is not None:
        result["store"] = msgspec.to_builtins(followed)
    return result


def _text(out: Path, made: Made, store: Path | None, followed: Reimport | None) -> list[str]:
    world, corpus = made.world, made.corpus
    splits = ", ".join(f"{name} {count}" for name, count in world.splits.items()) or "none"
    lines = [
        f"{out}: {len(world.documents):,} documents from {corpus.files:,} files, "
        f"{len(world.questions):,} questions ({splits}).",
        f"hash {world.hash}",
    ]
    counted = {
        "files of other formats ignored": corpus.ignored,
        "code blocks, not split into sentences": corpus.code_blocks,
        "sentences cut at a clause because they were too long": corpus.long_sentences,
        "documents that repeat another word for word": repeated(world.documents),
        "links to pages that are not here": corpus.dead_links,
        "supports dropped because their documents are gone": made.lost_supports,
    }
    lines += [f"  {count:,} {what}" for what, count in counted.items() if count]
    lines += _some([f"  left out: {problem.file} ({problem.reason})" for problem in corpus.skipped])
    lines += _some(
        [
            f"  asked twice: {pair.first} and {pair.second}, in {' and '.join(dict.fromkeys(pair.splits))}"
            + ("; the second is left out" if pair.dropped else "")
            for pair in made.questions.duplicates
        ]
    )
    if made.questions.leaks:
        lines.append(f"  {len(made.questions.leaks)} of them stand in two splits: training would see the exam.")
    if made.changed is not None:
        lines += _changes(made)
    if followed is not None:
        lines += _followed(store, followed)
    return lines


def _changes(made: Made) -> list[str]:
    changed = made.changed
    if not changed:
        return ["No document changed."]
    return [
        f"{len(changed.added):,} documents added, {len(changed.edited):,} edited, {len(changed.removed):,} removed, "
        f"{len(changed.relinked):,} with other links, {len(changed.moved):,} moved."
    ]


def _followed(store: Path | None, followed: Reimport) -> list[str]:
    if not (followed.added or followed.edited or followed.removed or followed.restored or followed.affected):
        return [f"{store} is up to date (iteration {followed.iteration})."]
    lines = [
        f"{store}, iteration {followed.iteration}: {followed.added:,} documents added, {followed.edited:,} edited, "
        f"{followed.removed:,} removed, {followed.restored:,} restored."
    ]
    lines += _some([f"  an agent's edit of {id} was replaced by what the file says now" for id in followed.overwritten])
    indexes = []
    for index in followed.affected:
        pointed = [f"{len(ids)} {what}" for ids, what in ((index.edited, "edited"), (index.removed, "removed")) if ids]
        indexes.append(f"  [{index.id}] {index.text} points at {' and '.join(pointed)}")
    return lines + _some(indexes)


def _some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"  ... and {len(lines) - SHOWN:,} more (see --json)"]
