"""Documents as a world: `kbgym init`, `kbgym import corpus`, and `kbgym watch`, which keeps a store in step."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.api import open
from kbgym.baselines.pages import with_page_links
from kbgym.cli.common import Printed, emit, is_silent, progress, say, splits_of, verb, with_search, world_values
from kbgym.cli.settings import FILE, Project, option, options, place
from kbgym.corpus.documents import ReadingOptions
from kbgym.corpus.importing import Made, load_old, make, replace_world
from kbgym.corpus.store_update import Reimport, Watcher, reimport
from kbgym.corpus.update import Changes
from kbgym.errors import BadInput, KbgymError
from kbgym.sanitize import counted
from kbgym.search.base import SearchKind
from kbgym.trace import is_url
from kbgym.worlds.world import World

SHOWN = 10  # lines of one kind
MANY = 20_000  # documents whose embedding takes minutes
TEMPLATE = Path(__file__).with_name(FILE)


@verb("init")
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True))
def init_command(folder: Path | None, questions: Path | None) -> Printed:
    """Write kbgym.toml into the current folder and import the documents in FOLDER.

    Every verb run beside the file takes its world, run and settings from it. Without FOLDER an existing kbgym.toml is
    accepted, with the agents and endpoints it names, and its documents are imported.

    \b
    Example:
      kbgym init notes --questions questions.csv
      kbgym prove
    """
    file = Path.cwd() / FILE
    exists = file.exists()
    if exists and folder is not None:
        raise BadInput(f"{FILE} exists already; edit it, or remove it to start again.")
    if not exists and folder is None:
        raise BadInput(f"there is no {FILE} here; name the folder of your documents: kbgym init FOLDER.")
    if not exists:
        asked = f"questions = {json.dumps(str(questions))}" if questions else '# questions = "questions.csv"'
        text = TEMPLATE.read_text(encoding="utf-8").replace("{questions}", asked)
        file.write_text(text.replace("{documents}", json.dumps(str(folder))), encoding="utf-8")
    try:
        project = Project.load(Path.cwd())
        project.accept()
        place = Path(project.values["world"])
        if not place.exists():
            silent = ["--quiet"] if is_silent() else []
            corpus_command.main(silent, prog_name="kbgym import corpus", standalone_mode=False)
    except BaseException:
        if not exists:
            file.unlink()
        raise
    world = World.load(place)
    result = {"config": str(file), "documents": len(world.documents), "questions": len(world.questions)}
    draft = f"kbgym questions suggest {place} --agent llm:PROVIDER/MODEL --out questions.csv"
    step = "kbgym prove" if world.split("train") else draft
    return result, f"{FILE} {'accepted' if exists else 'written'}; edit it to change settings.\nNext: {step}"


@verb("corpus")
@place("PATHS...", "documents", "paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@option("questions", "--questions", "questions")
@option("world", "--out", "out", required=True, help="The folder to write the world to.")
@options("unit", "links", "structure")
@options("on_error", default="refuse")
@options("language", default="en")
@options("site", "about", default="")
@options("search")
def corpus_command(
    paths: tuple[Path, ...],
    questions: Path | None,
    out: Path,
    structure: bool,
    seed: int,
    update: bool,
    store: Path | None,
    search: SearchKind | None,
    **reading: Any,
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
    known: dict[str, Any] = {"unit": "sentence", **old.facts} if old is not None else {"unit": "passage"}
    structure = structure or bool(known.get("structure"))
    reading["links"] = reading["links"] or structure
    reading["unit"] = reading["unit"] or known["unit"]
    with progress("reading") as tick:
        made = make(
            paths, questions, ReadingOptions(**reading), seed, old, tick, with_page_links if structure else None
        )
        tick(1, 1, f"writing {len(made.world.documents):,} documents")
        made = msgspec.structs.replace(made, world=with_search(made.world, search or known.get("search")))
        if old is None:
            made.world.save(out)
        else:
            replace_world(old, made.world, out)
    followed = reimport(store, made.world) if store else None
    lines = _report(out, made)
    lines += _change_lines(made, made.changed) if made.changed is not None else []
    lines += _store_lines(store, followed) if followed is not None else []
    counts = ("files", "bytes", "characters", "ignored", "skipped", "empty", "long_sentences", "dead_links")
    result = {
        **world_values(made.world),
        **{name: getattr(made.corpus, name) for name in counts},
        "left_out": made.corpus.lost,
        "links": made.links,
        "structure_links": made.structured,
        **{name: getattr(made.questions, name) for name in ("duplicates", "leaks", "unapproved")},
        **({"changes": _changes(made, made.changed)} if made.changed is not None else {}),
        **({"store": followed} if followed is not None else {}),
    }
    return result, lines


def _changes(made: Made, changed: Changes) -> dict[str, Any]:
    return {
        **{name: [one.id for one in getattr(changed, name)] for name in ("added", "edited", "relinked")},
        "removed": changed.removed,
        "moved": len(changed.moved),
        **{name: getattr(made, name) for name in ("renamed", "lost_supports", "doubtful")},
    }


def _report(out: Path, made: Made) -> list[str]:
    world, corpus, asked = made.world, made.corpus, made.questions
    counts = {
        "sentences cut at a clause because they were too long": corpus.long_sentences,
        "links between documents": made.links,
        "of them from the structure of pages": made.structured,
        "links to pages that are not here": corpus.dead_links,
        "supports dropped because their documents are gone": made.lost_supports,
        "drafted questions left out because they are not approved": asked.unapproved,
    }
    twice = (
        f"  asked twice: {pair.first} and {pair.second}, in {' and '.join(dict.fromkeys(pair.splits))}"
        + ("; the second is left out" if pair.dropped else "")
        for pair in asked.duplicates
    )
    slow = "Embedding so many documents takes minutes: --search words needs no embedding, --unit passage makes fewer."
    leaks = f"  {len(asked.leaks)} of them stand in two splits: training would see the exam."
    return [
        f"{out}: {counted(len(world.documents), 'document')} from {counted(corpus.files, 'file')}, "
        f"{counted(len(world.questions), 'question')} ({splits_of(world) or 'none'}).",
        f"{corpus.bytes:,} bytes in, {corpus.characters:,} characters out.",
        f"hash {world.hash}",
        *(f"  {count:,} {what}" for what, count in counts.items() if count),
        *(
            f"  not in the documents: {loss.what} ({loss.count:,} of {loss.characters:,} characters): {loss.why}"
            for loss in corpus.lost
        ),
        *_some(f"  left out: {one.file} ({one.reason})" for one in corpus.skipped),
        *_some(f"  not read: {one.file} ({one.reason})" for one in corpus.ignored),
        *_some(f"  no text: {name}" for name in corpus.empty),
        *_some(twice),
        *([leaks] if asked.leaks else []),
        *([slow] if len(world.documents) > MANY and world.facts.get("search") != "words" else []),
    ]


def _change_lines(made: Made, changed: Changes) -> list[str]:
    if not changed:
        return ["No document changed."]
    doubts = (
        f"  {one.text!r}: its answer {one.golds[0]!r} {'may be wrong now' if one.said else 'is not there any more'}, "
        f"with {_touched(one.edited, one.removed)} of its supports"
        for one in made.doubtful
    )
    return [
        f"{len(changed.added):,} documents added, {len(changed.edited):,} edited, {len(changed.removed):,} removed, "
        f"{len(changed.relinked):,} with other links, {len(changed.moved):,} moved.",
        *_some(f"  {before} is {after} now" for before, after in made.renamed.items()),
        *_some(doubts),
    ]


def _touched(edited: Sequence[str], removed: Sequence[str]) -> str:
    return " and ".join(f"{len(ids)} {how}" for ids, how in ((edited, "edited"), (removed, "removed")) if ids)


def _store_lines(store: object, followed: Reimport) -> list[str]:
    if not (followed.added or followed.edited or followed.removed or followed.restored or followed.affected):
        return [f"{store} is up to date (iteration {followed.iteration})."]
    return [
        f"{store}, iteration {followed.iteration}: {followed.added:,} documents added, {followed.edited:,} edited, "
        f"{followed.removed:,} removed, {followed.restored:,} restored.",
        *_some(f"  an agent's edit of {id} was replaced by what the file says now" for id in followed.overwritten),
        *_some(f"  [{one.id}] {one.text} points at {_touched(one.edited, one.removed)}" for one in followed.affected),
    ]


def _some(lines: Iterable[str]) -> Iterator[str]:
    rest = iter(lines)
    yield from islice(rest, SHOWN)
    if more := sum(1 for _ in rest):
        yield f"  ... and {more:,} more (see --json)"


@verb("watch")
@place("FOLDER...", "documents", "paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@option("run", "--store", "store", type=str, required=True, help="The run or store to update.")
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
            made, changed = followed.made, followed.made.changed or Changes()
            lines = [f"{how} [{one.id}] {one.text}" for how in ("added", "edited") for one in getattr(changed, how)]
            lines += [f"removed [{id}]" for id in changed.removed]
            lines += [*_change_lines(made, changed)[1:], *_store_lines(store, followed.store)]
            emit(_changes(made, changed) | {"iteration": followed.store.iteration}, lines)
        time.sleep(every)
