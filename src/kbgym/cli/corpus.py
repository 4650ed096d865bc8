"""`kbgym import corpus` and `kbgym watch`: documents as a world, and a store that follows them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from kbgym.api import open
from kbgym.baselines.pages import with_page_links
from kbgym.cli.common import Printed, emit, progress, say, verb, with_search
from kbgym.cli.settings import option, options, place
from kbgym.corpus.documents import ReadingOptions, Unit
from kbgym.corpus.importing import Made, load_old, make, replace_world
from kbgym.corpus.store_update import Followed, Reimport, Watcher, reimport
from kbgym.corpus.update import Changes
from kbgym.errors import BadInput, KbgymError
from kbgym.search.base import SearchKind
from kbgym.trace import is_url


@verb("corpus")
@place("PATHS...", "documents", "paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@option("questions", "--questions", "questions")
@option("world", "--out", "out", required=True, help="The folder to write the world to.")
@options("unit", "links", "structure")
@options("on_error", default="refuse")
@options("language", default="en")
@options("site", "about", default="")
@options("follow", default=False)
@click.option("--seed", default=0, show_default=True, help="Seed for splits that the questions do not give.")
@click.option("--update", is_flag=True, help="Bring the world at --out up to date; unchanged sentences keep their ids.")
@click.option("--store", type=click.Path(path_type=Path), help="With --update: a run or store to update too.")
@options("search")
def corpus_command(
    paths: tuple[Path, ...],
    questions: Path | None,
    out: Path,
    on_error: Literal["refuse", "skip"],
    unit: Unit | None,
    links: bool,
    site: str,
    structure: bool,
    follow: bool,
    language: str,
    about: str,
    seed: int,
    update: bool,
    store: Path | None,
    search: SearchKind | None,
) -> Printed:
    """Make a world from your own documents: PATHS are files, or folders of them.

    Markdown, reStructuredText, HTML, text, YAML, TOML, JSON, JSONL, CSV and notebooks are read; with kbgym[documents]
    also PDF, DOCX, PPTX, XLSX and EPUB. Each page gives a card (title, fields, first sentence) and passages of 600 to
    900 characters; with --unit sentence, each sentence, table row, field and code block is a document. Every document
    records its position in its file. Omitted text is reported. The world is written atomically.

    \b
    Example:
      kbgym import corpus examples/skarn/pages --questions examples/skarn/questions.jsonl --links --out worlds/skarn
      kbgym import corpus examples/skarn/pages --links --out worlds/skarn --update --store runs/skarn
    """
    if store is not None and not update:
        raise BadInput("--store needs --update: a new world has no store yet.")
    old = load_old(out) if update else None
    structure = structure or (old is not None and bool(old.facts.get("structure")))
    links, relink = links or structure, with_page_links if structure else None
    unit = unit or (old.facts.get("unit", "sentence") if old else "passage")
    options = ReadingOptions(language, unit, links, on_error, follow, site, about.strip())
    with progress("reading") as tick:
        made = make(paths, questions, options, seed, old, tick, relink)
        tick(1, 1, f"writing {len(made.world.documents):,} documents")
        world = with_search(made.world, search or (old.facts.get("search") if old else None))
        made = msgspec.structs.replace(made, world=world)
        if old is None:
            world.save(out)
        else:
            replace_world(old, world, out)
    followed = reimport(store, made.world) if store else None
    return result_of(made, followed), text_of(out, made, store, followed)


SHOWN = 10


def result_of(made: Made, followed: Reimport | None) -> dict[str, Any]:
    world, corpus = made.world, made.corpus
    result: dict[str, Any] = {
        "documents": len(world.documents),
        "questions": len(world.questions),
        "splits": world.splits,
        "hash": world.hash,
        "files": corpus.files,
        "bytes": corpus.bytes,
        "characters": corpus.characters,
        "ignored": corpus.ignored,
        "skipped": corpus.skipped,
        "empty": corpus.empty,
        "left_out": corpus.lost,
        "long_sentences": corpus.long_sentences,
        "links": sum(len(document.links) for document in world.documents),
        "structure_links": made.structured,
        "dead_links": corpus.dead_links,
        "duplicates": made.questions.duplicates,
        "leaks": made.questions.leaks,
        "unapproved": made.questions.unapproved,
    }
    if made.changed is not None:
        result["changes"] = _changes(made)
    if followed is not None:
        result["store"] = msgspec.to_builtins(followed)
    return result


def _changes(made: Made) -> dict[str, Any]:
    changed = made.changed or Changes()
    return {
        "added": [document.id for document in changed.added],
        "edited": [document.id for document in changed.edited],
        "removed": changed.removed,
        "relinked": [document.id for document in changed.relinked],
        "moved": len(changed.moved),
        "renamed": made.renamed,
        "lost_supports": made.lost_supports,
        "doubtful": made.doubtful,
    }


def text_of(out: Path, made: Made, store: Path | None, followed: Reimport | None) -> list[str]:
    world, corpus = made.world, made.corpus
    splits = ", ".join(f"{name} {count}" for name, count in world.splits.items()) or "none"
    lines = [
        f"{out}: {len(world.documents):,} documents from {corpus.files:,} files, "
        f"{len(world.questions):,} questions ({splits}).",
        f"{corpus.bytes:,} bytes in, {corpus.characters:,} characters out.",
        f"hash {world.hash}",
    ]
    counted = {
        "sentences cut at a clause because they were too long": corpus.long_sentences,
        "links between documents": sum(len(document.links) for document in world.documents),
        "of them from the structure of pages": made.structured,
        "links to pages that are not here": corpus.dead_links,
        "supports dropped because their documents are gone": made.lost_supports,
        "drafted questions left out because they are not approved": made.questions.unapproved,
    }
    lines += [f"  {count:,} {what}" for what, count in counted.items() if count]
    lines += [
        f"  not in the documents: {loss.what} ({loss.count:,} of {loss.characters:,} characters): {loss.why}"
        for loss in corpus.lost
    ]
    lines += _some([f"  left out: {one.file} ({one.reason})" for one in corpus.skipped])
    lines += _some([f"  not read: {one.file} ({one.reason})" for one in corpus.ignored])
    lines += _some([f"  no text: {name}" for name in corpus.empty])
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
        lines += change_lines(made)
    if followed is not None:
        lines += followed_lines(store, followed)
    return lines


def change_lines(made: Made) -> list[str]:
    changed = made.changed or Changes()
    if not changed:
        return ["No document changed."]
    lines = [
        f"{len(changed.added):,} documents added, {len(changed.edited):,} edited, {len(changed.removed):,} removed, "
        f"{len(changed.relinked):,} with other links, {len(changed.moved):,} moved."
    ]
    lines += _some([f"  {before} is {after} now" for before, after in made.renamed.items()])
    doubts = [
        f"  {one.text!r}: its answer {one.golds[0]!r} {'may be wrong now' if one.said else 'is not there any more'}, "
        f"with {_touched(one.edited, one.removed)} of its supports"
        for one in made.doubtful
    ]
    return lines + _some(doubts)


def _touched(edited: Sequence[str], removed: Sequence[str]) -> str:
    return " and ".join(f"{len(ids)} {how}" for ids, how in ((edited, "edited"), (removed, "removed")) if ids)


def followed_lines(store: Path | None, followed: Reimport) -> list[str]:
    if not (followed.added or followed.edited or followed.removed or followed.restored or followed.affected):
        return [f"{store} is up to date (iteration {followed.iteration})."]
    lines = [
        f"{store}, iteration {followed.iteration}: {followed.added:,} documents added, {followed.edited:,} edited, "
        f"{followed.removed:,} removed, {followed.restored:,} restored."
    ]
    lines += _some([f"  an agent's edit of {id} was replaced by what the file says now" for id in followed.overwritten])
    return lines + _some(
        [f"  [{one.id}] {one.text} points at {_touched(one.edited, one.removed)}" for one in followed.affected]
    )


def _some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"  ... and {len(lines) - SHOWN:,} more (see --json)"]


@verb("watch")
@place("FOLDER...", "documents", "paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@option("run", "--store", "store", type=str, required=True, help="The run or store to update.")
@click.option("--every", default=2.0, show_default=True, type=click.FloatRange(min=0.05), help="Seconds between polls.")
def watch_command(paths: Sequence[Path], store: str, every: float) -> None:
    """Keep a store in step with the files it was made from, until interrupted.

    Files are read again when their modification time or size changes, and each update is one iteration of the store's
    history. Unchanged sentences keep their ids, even in renamed files, and documents written by agents are kept. Every
    update prints a line, or an object with --json. Read-only servers (`kbgym serve STORE --mcp --role reader`) pick up
    updates automatically; while another process writes to the store, updates wait. The world folder is not changed.

    \b
    Example:
      kbgym watch harbour/notes --store runs/harbour
    """
    if is_url(store) or "@" in Path(store).name:
        raise BadInput("watch follows a folder's newest state; use `kbgym import corpus --update` and copy the store.")
    with open(store) as opened:
        if opened.world is None:
            raise BadInput(f"{store} does not say which documents it was made from.")
        watcher = Watcher(paths, Path(store), opened.world, with_page_links)
    say(f"Watching {', '.join(map(str, paths))} for {store}; Ctrl-C ends it.")
    said = ""
    while True:
        try:
            followed = watcher.look()
        except KbgymError as problem:  # a partly written file or another writer: the next poll may succeed
            if str(problem) != said:
                say(f"{problem} Retrying.")
            said, followed = str(problem), None
        else:
            said = ""
        if followed is not None:
            emit(_changes(followed.made) | {"iteration": followed.store.iteration}, _watch_lines(store, followed))
        time.sleep(every)


def _watch_lines(store: str, followed: Followed) -> list[str]:
    changed = followed.made.changed or Changes()
    return [
        *(f"added [{one.id}] {one.text}" for one in changed.added),
        *(f"edited [{one.id}] {one.text}" for one in changed.edited),
        *(f"removed [{id}]" for id in changed.removed),
        *change_lines(followed.made)[1:],
        *followed_lines(Path(store), followed.store),
    ]
