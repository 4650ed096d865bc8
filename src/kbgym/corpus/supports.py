"""What becomes of questions when the documents they stand on change: named here, and decided by whoever asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kbgym.corpus.duplicates import normalised
from kbgym.corpus.update import Changes
from kbgym.worlds.world import Document, Question


class Doubtful(msgspec.Struct, frozen=True):
    """A question whose support changed: its gold may be wrong. `said` is false where the gold was there and went."""

    question: str
    text: str
    golds: tuple[str, ...]
    edited: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    said: bool = True


def doubtful(
    questions: Iterable[Question], old: Iterable[Document], changed: Changes, own: Mapping[str, str]
) -> tuple[Doubtful, ...]:
    """The questions that stood on a document which now says something else or is gone, as they were before.

    `own` are the sentences of the documents as they are now: where only what stands before one changed, nothing did.
    """
    edited, removed = {document.id: document.text for document in changed.edited}, set(changed.removed)
    before = {document.id: document.text for document in old if document.id in edited or document.id in removed}
    before = {id: text for id, text in before.items() if id in removed or not text.endswith(own.get(id, edited[id]))}
    found = []
    for question in questions:
        touched = [id for id in question.support if id in before]
        if touched:
            was = any(_says(before[id], gold) for id in touched for gold in question.golds)
            still = any(_says(edited.get(id, ""), gold) for id in touched for gold in question.golds)
            found.append(
                Doubtful(
                    question.id,
                    question.text,
                    question.golds,
                    tuple(id for id in touched if id in edited),
                    tuple(id for id in touched if id in removed),
                    still or not was,
                )
            )
    return tuple(found)


def _says(text: str, words: str) -> bool:
    return f" {normalised(words)} " in f" {normalised(text)} "


def keep_questions(questions: Iterable[Question], ids: Iterable[str]) -> tuple[tuple[Question, ...], int]:
    """Old questions over new documents: supports that are gone are dropped, and counted."""
    known = set(ids)
    kept, lost = [], 0
    for question in questions:
        support = tuple(id for id in question.support if id in known)
        lost += len(question.support) - len(support)
        kept.append(msgspec.structs.replace(question, support=support) if support != question.support else question)
    return tuple(kept), lost
