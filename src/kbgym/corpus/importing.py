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
from kbgym.corpus.update import Changes, Doubtful, Kept, changes, doubtful, keep_ids, keep_links, keep_questions
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
    documents = tuple(corpus.documents)
    kept = Kept(documents)
    if old is not None:
        kept = keep_ids(old.documents, documents, corpus.own)
        final = {before.id: after.id for before, after in zip(documents, kept.documents, strict=True)}
        corpus.own = {final[id]: own for id, own in corpus.own.items()}
        corpus.quotes = [(final[id], own, text) for id, own, text in corpus.quotes]
        dead = {final[id]: count for id, count in corpus.dead.items()}
        documents, followed = keep_links(old.documents, kept.documents, dead)
        corpus.dead_links -= followed
    structured = -sum(len(document.links) for document in documents)
    if structure is not None:
        documents = structure(documents)
    structured += sum(len(document.links) for document in documents)
    asked, lost = MadeQuestions(), 0
    if questions is not None:
        asked = make_questions(rows, documents, seed, old.questions if old else (), corpus.quotes)
        asked = msgspec.structs.replace(asked, unapproved=drafts)
    elif old is not None:
        still, lost = keep_questions(old.questions, (document.id for document in documents))
        asked = MadeQuestions(still)
    facts: dict[str, Any] = {"kind": KIND, "unit": options.unit, "language": options.language}
    facts |= {"links": options.links, "seed": seed}
    if options.site:
        facts["site"] = options.site
    if structure is not None:
        facts["structure"] = True
    if (description := _described(old, options.about)) is not None:
        facts["description"] = msgspec.to_builtins(description)
    world = World(documents, asked.questions, facts)
    if old is None:
        return Made(world, corpus, asked, structured=structured)
    changed = changes(old.documents, documents)
    known = {question.id for question in asked.questions}
    in_doubt = doubtful((one for one in old.questions if one.id in known), old.documents, changed, corpus.own)
    return Made(world, corpus, asked, changed, lost, kept.renamed, in_doubt, structured)


def _described(old: World | None, about: str) -> Description | None:
    """Return the description of the documents, with a new paragraph if one is given."""
    if not is_text(about):
        raise BadInput("about holds characters that are not Unicode text.")
    before = old.description if old is not None else None
    return msgspec.structs.replace(before or Description(), about=about) if about else before


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
