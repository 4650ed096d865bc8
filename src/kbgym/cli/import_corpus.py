"""`kbgym import corpus`: your own files as a world, and later as the same world brought up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from kbgym.cli.common import emit, output_options, progress
from kbgym.cli.spending import Spending, spending_options, with_spend
from kbgym.corpus.build import Options
from kbgym.corpus.landing import Reimport, reimport
from kbgym.corpus.make import Made, load_old, make, repeated, replace_world
from kbgym.corpus.rewrite import COMPLETION, Rewriter
from kbgym.errors import BadInput
from kbgym.llm.connect import is_model
from kbgym.worlds.world import World

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
@click.option("--rewrite", help="A model that makes every sentence stand alone: llm:PROVIDER/MODEL or cassette:FILE.")
@spending_options
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
    rewrite: str | None,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Make a world from your own documents: PATHS are files, or folders of Markdown, text, HTML, JSONL and CSV files.

    Every document is one sentence with the title and section it needs; file and place are kept as its source. A table's
    row is one sentence. Writes the whole world or nothing.

    With --rewrite a model says every sentence so that it stands alone ("She was built in 1994." names the boat). Its
    replies are kept beside the world, so that an interrupted import goes on where it was and unchanged files cost
    nothing again; what fails the checks stays as it was.

    \b
    Example:
      kbgym import corpus examples/harbour/notes --questions examples/harbour/questions.csv --out worlds/harbour
      kbgym import corpus examples/harbour/notes --out worlds/harbour --update --store runs/harbour
      kbgym import corpus examples/harbour/notes --out worlds/alone --rewrite llm:openai/gpt-5-mini --max-cost 1
    """
    spending = Spending(flags)
    if store is not None and not update:
        raise BadInput("--store needs --update: a new world has no store yet.")
    old = load_old(out) if update else None
    options = Options(language, links, code, on_error)
    if rewrite is None:
        with progress("reading", quiet or as_json) as tick:
            made = make(paths, questions, options, seed, old, tick)
    else:
        made = _rewritten(paths, questions, options, seed, old, out, rewrite, spending, quiet or as_json)
    if old is None:
        made.world.save(out)
    else:
        replace_world(old, made.world, out)
    followed = reimport(store, made.world) if store else None
    emit(_result(made, followed), as_json, quiet, _text(out, made, store, followed))


def _rewritten(
    paths: tuple[Path, ...],
    questions: Path | None,
    options: Options,
    seed: int,
    old: World | None,
    out: Path,
    name: str,
    spending: Spending,
    quiet: bool,
) -> Made:
    """The same with a model's help. Its cassette lies beside the world: a world holds three files and no other."""
    if not is_model(name):
        raise BadInput(f"--rewrite takes a model, llm:PROVIDER/MODEL or cassette:FILE, not {name!r}.")
    cassette = out.with_name(f"{out.name}.rewrite.cassette.jsonl") if name.startswith("llm:") else None
    with spending.models([name], cassette) as models, progress("rewriting", quiet) as tick:
        assert models is not None
        rewriter = Rewriter(
            models,
            name,
            spending.concurrency,
            lambda requests: spending.confirm_requests(name, requests, COMPLETION),
            with_spend(tick, models),
        )
        options = msgspec.structs.replace(options, rewriter=rewriter.name)
        return make(paths, questions, options, seed, old, rewrite=rewriter)


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
        "unapproved": made.questions.unapproved,
    }
    if corpus.asked:
        result["rewrite"] = _counts(made)
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


def _counts(made: Made) -> dict[str, int]:
    corpus = made.corpus
    rewritten = len(corpus.originals)
    kept = corpus.asked - rewritten - corpus.not_rewritten
    return {"asked": corpus.asked, "rewritten": rewritten, "kept": kept, "failed": corpus.not_rewritten}


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
        "drafted questions left out because nobody approved them": made.questions.unapproved,
    }
    if corpus.asked:
        counts = _counts(made)
        lines.append(
            f"  {counts['rewritten']:,} of {counts['asked']:,} sentences rewritten by {world.facts['rewrite']}, "
            f"{counts['kept']:,} stand alone as they are, {counts['failed']:,} stay as they are because no rewriting "
            "passed the checks"
        )
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
