"""What an import of documents says when it is done: as JSON, and on the screen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from kbgym.corpus.files import Problem
from kbgym.corpus.landing import Reimport
from kbgym.corpus.make import Made, repeated

SHOWN = 10
FILES_SHOWN = 20


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
            "renamed": made.renamed,
            "lost_supports": made.lost_supports,
            "doubtful": made.doubtful,
        }
    if followed is not None:
        result["store"] = msgspec.to_builtins(followed)
    return result


def _counts(made: Made) -> dict[str, int]:
    corpus = made.corpus
    rewritten = len(corpus.originals)
    kept = corpus.asked - rewritten - corpus.not_rewritten
    return {"asked": corpus.asked, "rewritten": rewritten, "kept": kept, "failed": corpus.not_rewritten}


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
    for loss in corpus.lost:
        lines.append(
            f"  not in the documents: {_many(loss.count, loss.what)} ({loss.characters:,} characters): {loss.why}"
        )
    lines += _files("left out", corpus.skipped)
    lines += _files("not read", corpus.ignored)
    lines += _files("no text", [Problem(name, "read, and nothing is in it") for name in corpus.empty])
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
    changed = made.changed
    if not changed:
        return ["No document changed."]
    lines = [
        f"{len(changed.added):,} documents added, {len(changed.edited):,} edited, {len(changed.removed):,} removed, "
        f"{len(changed.relinked):,} with other links, {len(changed.moved):,} moved."
    ]
    lines += _some([f"  {before} is {after} now" for before, after in made.renamed.items()])
    doubts = []
    for one in made.doubtful:
        why = "is not there any more" if not one.said else "may be wrong now"
        what = " and ".join(
            f"{len(ids)} {how}" for ids, how in ((one.edited, "edited"), (one.removed, "removed")) if ids
        )
        doubts.append(f"  {one.text!r}: its answer {one.golds[0]!r} {why}, with {what} of its supports")
    return lines + _some(doubts)


def followed_lines(store: Path | None, followed: Reimport) -> list[str]:
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
    lines += _some(indexes)
    return lines + _some(
        [f"  [{one.document}] {one.text} belongs under [{one.index}] {one.index_text}" for one in followed.belongs]
    )


def _some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"  ... and {len(lines) - SHOWN:,} more (see --json)"]


def _files(what: str, problems: list[Problem]) -> list[str]:
    """Every file by name, the first of them, and what the others are."""
    lines = [f"  {what}: {problem.file} ({problem.reason})" for problem in problems[:FILES_SHOWN]]
    if rest := problems[FILES_SHOWN:]:
        kinds = Counter(problem.reason for problem in rest)
        shown = "; ".join(f"{count:,} {reason}" for reason, count in kinds.most_common(5))
        lines.append(f"  {what}: {len(rest):,} more ({shown}; see --json)")
    return lines


def _many(count: int, what: str) -> str:
    return f"{count:,} {what if count == 1 else _PLURAL.get(what, what + 's')}"


_PLURAL = {
    "script or style": "scripts or styles",
    "navigation or form": "pieces of navigation or forms",
    "language of a code block": "languages of code blocks",
    "other": "other words",
}
