"""Import of paths and a questions file as a world, or as an update that replaces the old world atomically."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import encode, is_text, sync
from kbgym.corpus.documents import Corpus, ReadingOptions, read_corpus
from kbgym.corpus.questions import MadeQuestions, make_questions, read_rows
from kbgym.corpus.update import Changes, Doubtful, changes, doubtful, keep_ids, keep_questions
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Description, Document, World

KIND = "corpus"
Structure = Callable[[Sequence[Document]], tuple[Document, ...]]  # the same documents with more links


class Made(msgspec.Struct, frozen=True):
    """The world, and a report of its import."""

    world: World
    corpus: Corpus
    questions: MadeQuestions
    changed: Changes | None = None
    lost_supports: int = 0
    renamed: dict[str, str] = {}
    doubtful: tuple[Doubtful, ...] = ()
    structured: int = 0  # links that `structure` added

    @property
    def links(self) -> int:
        return sum(len(document.links) for document in self.world.documents)


def make(
    paths: Sequence[Path],
    questions: Path | None,
    options: ReadingOptions,
    seed: int = 0,
    old: World | None = None,
    tick: ProgressCallback | None = None,
    structure: Structure | None = None,
) -> Made:
    """Read and check everything; sentences that an old world holds keep their ids. `structure` adds links."""
    rows, drafts = read_rows(questions) if questions else ([], 0)  # first: report its errors early
    corpus = read_corpus(paths, options, [questions] if questions else [], tick)
    documents, renamed = tuple(corpus.documents), dict[str, str]()
    if old is not None:
        documents, renamed = _continued(old, corpus)
    linked = documents if structure is None else structure(documents)
    structured = sum(len(after.links) - len(before.links) for before, after in zip(documents, linked, strict=True))
    asked, lost = MadeQuestions(), 0
    if questions is not None:
        asked = make_questions(rows, linked, seed, old.questions if old else (), corpus.quotes)
        asked = msgspec.structs.replace(asked, unapproved=drafts)
    elif old is not None:
        still, lost = keep_questions(old.questions, (document.id for document in linked))
        asked = MadeQuestions(still)
    facts: dict[str, Any] = {"kind": KIND, "unit": options.unit, "language": options.language}
    facts |= {"links": options.links, "seed": seed}
    facts |= {"site": options.site} if options.site else {}
    facts |= {"structure": True} if structure is not None else {}
    description = old.description if old is not None else None
    if about := options.about.strip():
        if not is_text(about):
            raise BadInput("about holds characters that are not Unicode text.")
        description = msgspec.structs.replace(description or Description(), about=about)
    facts |= {"description": msgspec.to_builtins(description)} if description is not None else {}
    made = Made(World(linked, asked.questions, facts), corpus, asked, structured=structured)
    if old is None:
        return made
    changed = changes(old.documents, linked)
    known = {question.id for question in asked.questions}
    in_doubt = doubtful((one for one in old.questions if one.id in known), old.documents, changed, corpus.own)
    return msgspec.structs.replace(made, changed=changed, lost_supports=lost, renamed=renamed, doubtful=in_doubt)


def _continued(old: World, corpus: Corpus) -> tuple[tuple[Document, ...], dict[str, str]]:
    """Return the documents under the ids of an old world, and the renamed files."""
    kept, renamed = keep_ids(old.documents, corpus.documents, corpus.own)
    final = {before.id: after.id for before, after in zip(corpus.documents, kept, strict=True)}
    corpus.own = {final[id]: own for id, own in corpus.own.items()}
    corpus.quotes = [(final[id], own, text) for id, own, text in corpus.quotes]
    return kept, renamed


def load_old(out: Path) -> World:
    """Load the world that an update starts from, and restore it first if its replacement was interrupted."""
    kept = _kept(out)
    if kept.exists() and not out.exists():
        os.replace(kept, out)
    world = World.load(out)
    if kind_of(world).name != KIND:
        raise BadInput(f"{out} was not made by `kbgym import corpus`, so it cannot be updated by it.")
    return world


def replace_world(old: World, new: World, out: Path) -> bool:
    """Replace the old world by a new one. Return True if anything changed."""
    if encode(old) == encode(new):
        return False
    scratch, kept = out.parent / f".{out.name}.new", _kept(out)
    for leftover in (scratch, kept):
        shutil.rmtree(leftover, ignore_errors=True)
    others = [path for path in out.iterdir() if path.name not in ("documents.jsonl", "questions.jsonl", "world.json")]
    if others:
        raise BadInput(f"{others[0]} is no part of a world; move it away before an update.")
    new.save(scratch)
    os.replace(out, kept)
    os.replace(scratch, out)
    sync(out.parent)
    shutil.rmtree(kept)
    return True


def _kept(out: Path) -> Path:
    return out.parent / f".{out.name}.old"
