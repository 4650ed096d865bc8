"""What changed between two imports, and which ids stay.

A sentence that is still there keeps its id, wherever it moved. One that was modified in place (the sentences around it
are the old ones, and at least half of its words are) keeps its id too and counts as edited. Everything else was added
or removed. Nothing here reads files; it works on documents in the order of their files.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kbgym.corpus.build import document_id
from kbgym.worlds.world import Document, Question

ALIKE = 0.5
WINDOW = 8  # how far a modified sentence is looked for among the old ones at its place


class Changes(msgspec.Struct, frozen=True):
    """From one set of documents to another, as the documents are now.

    `relinked`: other links, whatever else. `moved`: the same text at another place of the files.
    """

    added: tuple[Document, ...] = ()
    edited: tuple[Document, ...] = ()
    removed: tuple[str, ...] = ()
    relinked: tuple[Document, ...] = ()
    moved: tuple[Document, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.edited or self.removed or self.relinked or self.moved)


def changes(old: Iterable[Document], new: Iterable[Document]) -> Changes:
    """What must happen to the old documents to get the new ones, by id."""
    before = {document.id: document for document in old}
    after = {document.id: document for document in new}
    both = [(before[id], document) for id, document in after.items() if id in before]
    same = [(one, other) for one, other in both if one.text == other.text]
    return Changes(
        added=tuple(document for id, document in after.items() if id not in before),
        edited=tuple(other for one, other in both if one.text != other.text),
        removed=tuple(id for id in before if id not in after),
        relinked=tuple(other for one, other in both if one.links != other.links),
        moved=tuple(other for one, other in same if one.source != other.source),
    )


def keep_ids(
    old: Sequence[Document], new: Sequence[Document], own: Mapping[str, str] | None = None
) -> tuple[Document, ...]:
    """The new documents under the ids the old ones had, where they are the same sentence or a modified one.

    `own` gives the text of those new documents that have a title or section put before it.
    """
    own = own or {}
    match: dict[str, str] = {}  # new id: old id
    old_files, new_files = _by_file(old), _by_file(new)
    for file, documents in new_files.items():
        match |= _same_text(old_files.get(file, []), documents, match)
    taken = set(match.values())
    # A sentence that went to another file, or whose file was renamed.
    match |= _same_text(
        [document for document in old if document.id not in taken],
        [document for document in new if document.id not in match],
        match,
    )
    # The same sentence of the same file under another heading: its id is made of those two alone.
    left = {document.id for document in old}.difference(match.values())
    match |= {document.id: document.id for document in new if document.id in left and document.id not in match}
    for file, documents in new_files.items():
        match |= _modified(old_files.get(file, []), documents, match, own)
    return _renamed(new, match, {document.id for document in old})


def _by_file(documents: Iterable[Document]) -> dict[str, list[Document]]:
    files: dict[str, list[Document]] = {}
    for document in documents:
        files.setdefault(document.source.file if document.source else "", []).append(document)
    return files


def _same_text(old: Sequence[Document], new: Sequence[Document], match: Mapping[str, str]) -> dict[str, str]:
    """Equal texts paired in the order they stand; of equal texts, those with the same id first."""
    there = {document.id: document.text for document in old}
    found = {document.id: document.id for document in new if there.get(document.id) == document.text}
    waiting: dict[str, deque[str]] = {}
    for document in old:
        if document.id not in found:
            waiting.setdefault(document.text, deque()).append(document.id)
    for document in new:
        if document.id not in found and document.id not in match and waiting.get(document.text):
            found[document.id] = waiting[document.text].popleft()
    return found


def _modified(
    old: Sequence[Document], new: Sequence[Document], match: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Sentences without a partner, paired with those that stood between the same neighbours and are alike."""
    taken = set(match.values())
    gaps: dict[str, list[Document]] = {}
    anchor = ""
    for document in old:
        if document.id in taken:
            anchor = document.id
        else:
            gaps.setdefault(anchor, []).append(document)
    found: dict[str, str] = {}
    anchor = ""
    for document in new:
        if document.id in match:
            anchor = match[document.id]
            continue
        gap = gaps.get(anchor, [])
        prefix = document.text.removesuffix(own.get(document.id, document.text))
        words = _words(document.text, prefix)
        for place, candidate in enumerate(gap[:WINDOW]):
            if _alike(words, _words(candidate.text, prefix)) >= ALIKE:
                found[document.id] = candidate.id
                del gap[: place + 1]
                break
    return found


def _words(text: str, prefix: str) -> Counter[str]:
    return Counter(text.removeprefix(prefix).casefold().split())


def _alike(one: Counter[str], other: Counter[str]) -> float:
    """The share of words two sentences have in common."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def _renamed(new: Sequence[Document], match: Mapping[str, str], old: set[str]) -> tuple[Document, ...]:
    """The new documents under their final ids. A new one never takes an id that another had before."""
    final: dict[str, str] = {}
    used = set(match.values()) | old
    repeats: Counter[tuple[str, str]] = Counter()
    for document in new:
        if document.id in match:
            final[document.id] = match[document.id]
            continue
        id, said = document.id, (document.source.file if document.source else "", document.text)
        while id in used:
            repeats[said] += 1
            id = document_id(*said, repeats[said])
        used.add(id)
        final[document.id] = id
    return tuple(
        msgspec.structs.replace(
            document, id=final[document.id], links=tuple(final[target] for target in document.links)
        )
        for document in new
    )


def keep_questions(questions: Iterable[Question], ids: Iterable[str]) -> tuple[tuple[Question, ...], int]:
    """Old questions over new documents: supports that are gone are dropped, and counted."""
    known = set(ids)
    kept, lost = [], 0
    for question in questions:
        support = tuple(id for id in question.support if id in known)
        lost += len(question.support) - len(support)
        kept.append(msgspec.structs.replace(question, support=support) if support != question.support else question)
    return tuple(kept), lost
