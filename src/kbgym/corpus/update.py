"""Comparison of two imports: changes, and stable ids.

A document that did not change keeps its id, also when it moved or its file was renamed. One that was modified in place
(between the same neighbours, with at least half of its words) keeps its id and counts as edited. All others were added
or removed. Documents are compared in the order of their files; no file is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import product

import msgspec

from kbgym.corpus.documents import document_id
from kbgym.corpus.splits import says
from kbgym.worlds.world import Document, Question

ALIKE = 0.5
WINDOW = 8  # how far a modified sentence is searched for around its old position
MOST_COMPARED = 10_000  # pairs of a removed file and an added one


class Changes(msgspec.Struct, frozen=True):
    """The changes from one set of documents to another.

    `relinked`: changed links, with or without other changes. `moved`: the same text at another position of the files.
    """

    added: tuple[Document, ...] = ()
    edited: tuple[Document, ...] = ()
    removed: tuple[str, ...] = ()
    relinked: tuple[Document, ...] = ()
    moved: tuple[Document, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.edited or self.removed or self.relinked or self.moved)


def changes(old: Iterable[Document], new: Iterable[Document]) -> Changes:
    """Return the changes that lead from the old documents to the new ones, by id."""
    before = {document.id: document for document in old}
    after = {document.id: document for document in new}
    both = [(before[id], document) for id, document in after.items() if id in before]
    same = [(one, other) for one, other in both if one.text == other.text]
    return Changes(
        added=tuple(document for id, document in after.items() if id not in before),
        edited=tuple(other for one, other in both if (one.text, one.fields) != (other.text, other.fields)),
        removed=tuple(id for id in before if id not in after),
        relinked=tuple(other for one, other in both if one.links != other.links),
        moved=tuple(other for one, other in same if one.source != other.source),
    )


def keep_ids(
    old: Sequence[Document], new: Sequence[Document], own: Mapping[str, str]
) -> tuple[tuple[Document, ...], dict[str, str]]:
    """Return the new documents under the ids of the old ones that are the same document or an earlier version of it.

    The second value is the renamed files by their old names. `own` maps new documents to their texts without context,
    which may change while the document stays the same.
    """
    match = _Match(old, new, own)
    match.pair(lambda one: (file_of(one), one.text))
    match.pair(lambda one: one.text)
    match.pair(lambda one: one.id)  # derived from the file and the text without its context
    renamed = _renamed_files(old, new, match.found)
    match.pair_modified({after: before for before, after in renamed.items()})
    return _with_ids(new, match.found, {document.id for document in old}), renamed


def file_of(document: Document) -> str:
    return document.source.file if document.source else ""


class _Match:
    """Pairs new documents with old ones; `found` maps new ids to old ones."""

    def __init__(self, old: Sequence[Document], new: Sequence[Document], own: Mapping[str, str]) -> None:
        self.old, self.new, self.own = old, new, own
        self.found: dict[str, str] = {}

    def _left(self) -> tuple[list[Document], list[Document]]:
        taken = set(self.found.values())
        return [one for one in self.old if one.id not in taken], [one for one in self.new if one.id not in self.found]

    def pair(self, key: Callable[[Document], Hashable]) -> None:
        """Pair documents with equal keys in order; of several candidates, prefer the same id."""
        before, after = self._left()
        waiting: dict[Hashable, dict[str, None]] = {}
        for document in before:
            waiting.setdefault(key(document), {})[document.id] = None
        for document in sorted(after, key=lambda one: one.id not in waiting.get(key(one), ())):
            if there := waiting.get(key(document)):
                id = document.id if document.id in there else next(iter(there))
                del there[id]
                self.found[document.id] = id

    def pair_modified(self, partner: Mapping[str, str]) -> None:
        """Pair similar documents that have the same neighbours in a file."""
        taken = set(self.found.values())
        gaps: dict[tuple[str, str], list[Document]] = {}
        anchors: dict[str, str] = {}
        for document in self.old:
            file = file_of(document)
            if document.id in taken:
                anchors[file] = document.id
            else:
                gaps.setdefault((file, anchors.get(file, "")), []).append(document)
        anchors = {}
        for document in self.new:
            file = partner.get(file_of(document), file_of(document))
            if document.id in self.found:
                anchors[file] = self.found[document.id]
                continue
            gap = gaps.get((file, anchors.get(file, "")), [])
            for place, candidate in enumerate(gap[:WINDOW]):
                if self._is_version(document, candidate):
                    self.found[document.id] = candidate.id
                    del gap[: place + 1]
                    break

    def _is_version(self, document: Document, before: Document) -> bool:
        own = self.own.get(document.id, document.text)
        context = document.text.removesuffix(own)
        words, there = own.casefold().split(), before.text.removeprefix(context).casefold().split()
        if context and not before.text.startswith(context):  # its context was different: compare as many words as now
            there = there[-len(words) :]
        path = own.rpartition(": ")[0]  # the same field with another value is a version too
        if path and document.kind == before.kind == "field" and before.text.rpartition(": ")[0].endswith(path):
            return True
        return _alike(Counter(words), Counter(there)) >= ALIKE


def _renamed_files(old: Sequence[Document], new: Sequence[Document], found: Mapping[str, str]) -> dict[str, str]:
    """Return removed files by name, with the new files that hold most of their documents or words."""
    before, after = _by_file(old), _by_file(new)
    gone, came = before.keys() - after.keys(), after.keys() - before.keys()
    where = {document.id: file for file in gone for document in before[file]}
    votes = Counter((where[found[one.id]], file) for file in came for one in after[file] if found.get(one.id) in where)
    alike = {pair: count / min(len(before[pair[0]]), len(after[pair[1]])) for pair, count in votes.items()}
    if len(gone) * len(came) <= MOST_COMPARED:
        words = {(side, file): Counter(" ".join(one.text for one in files[file]).casefold().split())
                 for side, files, names in (("old", before, gone), ("new", after, came)) for file in names}  # fmt: skip
        for pair in product(gone, came):
            alike[pair] = max(alike.get(pair, 0.0), _alike(words["old", pair[0]], words["new", pair[1]]))
    renamed: dict[str, str] = {}
    for one, other in sorted(alike, key=lambda pair: (-alike[pair], pair)):
        if alike[one, other] >= ALIKE and one not in renamed and other not in renamed.values():
            renamed[one] = other
    return renamed


def _by_file(documents: Iterable[Document]) -> dict[str, list[Document]]:
    files: dict[str, list[Document]] = {}
    for document in documents:
        files.setdefault(file_of(document), []).append(document)
    return files


def _alike(one: Counter[str], other: Counter[str]) -> float:
    """Return the share of words that two texts have in common."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def _with_ids(new: Sequence[Document], match: Mapping[str, str], old: set[str]) -> tuple[Document, ...]:
    """Return the new documents under their final ids. None takes an id that another document had."""
    final: dict[str, str] = {}
    used = set(match.values()) | old
    repeats: Counter[tuple[str, str]] = Counter()
    for document in new:
        if document.id in match:
            final[document.id] = match[document.id]
            continue
        id, said = document.id, (file_of(document), document.text)
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


# -- support documents of questions -----------------------------------------------------------------------------------


class Doubtful(msgspec.Struct, frozen=True):
    """A question whose support changed, so its gold may be wrong. `said`: False if the support lost the gold."""

    question: str
    text: str
    golds: tuple[str, ...]
    edited: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    said: bool = True


def doubtful(
    questions: Iterable[Question], old: Iterable[Document], changed: Changes, own: Mapping[str, str]
) -> tuple[Doubtful, ...]:
    """Return the questions whose supports changed or are gone, as they were before.

    `own` are the current sentences of the documents: a change of the context alone does not count.
    """
    edited, removed = {document.id: document.text for document in changed.edited}, set(changed.removed)
    before = {document.id: document.text for document in old if document.id in edited or document.id in removed}
    before = {id: text for id, text in before.items() if id in removed or not text.endswith(own.get(id, edited[id]))}
    found = []
    for question in questions:
        touched = [id for id in question.support if id in before]
        if touched:
            was = any(says(before[id], gold) for id in touched for gold in question.golds)
            still = any(says(edited.get(id, ""), gold) for id in touched for gold in question.golds)
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


def keep_questions(questions: Iterable[Question], ids: Iterable[str]) -> tuple[tuple[Question, ...], int]:
    """Return old questions without removed supports, and the number of those supports."""
    known = set(ids)
    kept, lost = [], 0
    for question in questions:
        support = tuple(id for id in question.support if id in known)
        lost += len(question.support) - len(support)
        kept.append(msgspec.structs.replace(question, support=support) if support != question.support else question)
    return tuple(kept), lost
