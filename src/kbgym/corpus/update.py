"""What changed between two imports, and which ids stay.

A sentence that is still there keeps its id, wherever it moved and whatever its file is called now. One that was
modified in place (the sentences around it are the old ones, and at least half of its words are) keeps its id too and
counts as edited. Everything else was added or removed. Nothing here reads files; it works on documents in the order of
their files.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kbgym.corpus.linking import document_id
from kbgym.corpus.splits import normalised
from kbgym.worlds.world import Document, Question

ALIKE = 0.5
WINDOW = 8  # how far a modified sentence is looked for among the old ones at its place
UNMISTAKABLE = 20  # characters of a sentence that is known again in any file
MOST_SEAMS = 12
_SEAM = re.compile(r"[:.!?] ")


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


class Kept(msgspec.Struct, frozen=True):
    """The new documents under the ids they keep, and which files were renamed (old name: new name)."""

    documents: tuple[Document, ...]
    renamed: dict[str, str] = {}


def keep_ids(old: Sequence[Document], new: Sequence[Document], own: Mapping[str, str] | None = None) -> Kept:
    """The new documents under the ids the old ones had, where they are the same sentence or a modified one.

    `own` gives, for those new documents that have something put before it, the sentence itself. It decides: a file that
    was renamed may have another title now, and its sentences are the same for all that.
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
    said = _Said(old, match)
    renamed = said.renamed(old_files, new_files, match, own)
    partner = {new_name: old_name for old_name, new_name in renamed.items()}
    for file, documents in new_files.items():
        before = old_files.get(partner.get(file, file), [])
        match |= said.same(documents, match, own, {document.id for document in before})
    match |= said.same(new, match, own)
    for file, documents in new_files.items():
        match |= _modified(old_files.get(partner.get(file, file), []), documents, match, own)
    return Kept(_renamed(new, match, {document.id for document in old}), renamed)


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


class _Said:
    """Old documents without a partner, by what may be their sentence: their text from any colon or full stop on."""

    def __init__(self, old: Sequence[Document], match: Mapping[str, str]) -> None:
        taken = set(match.values())
        self._by_end: dict[str, list[Document]] = {}
        for document in old:
            if document.id not in taken:
                starts = [0, *(found.end() for found in _SEAM.finditer(document.text))]
                for start in starts[:MOST_SEAMS]:
                    self._by_end.setdefault(document.text[start:], []).append(document)

    def same(
        self, new: Sequence[Document], match: Mapping[str, str], own: Mapping[str, str], among: set[str] | None = None
    ) -> dict[str, str]:
        """Documents whose sentence an old one ends with. Without a file to look among, only unmistakable ones."""
        found: dict[str, str] = {}
        taken = set(match.values())
        for document in new:
            said = own.get(document.id, document.text)
            if document.id in match or (among is None and len(said) < UNMISTAKABLE):
                continue
            fits = [one.id for one in self._by_end.get(said, ()) if one.id not in taken]
            fits = [id for id in fits if id in among] if among is not None else fits if len(fits) == 1 else []
            if fits:
                found[document.id] = fits[0]
                taken.add(fits[0])
        return found

    def renamed(
        self,
        old_files: Mapping[str, Sequence[Document]],
        new_files: Mapping[str, Sequence[Document]],
        match: Mapping[str, str],
        own: Mapping[str, str],
    ) -> dict[str, str]:
        """Files that are gone, and the new ones that say most of what they said."""
        where = {document.id: file for file, documents in old_files.items() for document in documents}
        votes: Counter[tuple[str, str]] = Counter()
        for file, documents in new_files.items():
            for document in documents if file not in old_files else ():
                said = own.get(document.id, document.text)
                known = [match[document.id]] if document.id in match else [one.id for one in self._by_end.get(said, ())]
                votes.update({(where[id], file) for id in known if where[id] not in new_files})
        found: dict[str, str] = {}
        for (before, after), count in sorted(votes.items(), key=lambda pair: (-pair[1], pair[0])):
            size = min(len(old_files[before]), len(new_files[after]))
            if before not in found and after not in found.values() and count >= ALIKE * size:
                found[before] = after
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
        said = own.get(document.id, document.text)
        said = said if document.text.endswith(said) else document.text  # what a rewriter made of it
        words, prefix = said.casefold().split(), document.text.removesuffix(said)
        for place, candidate in enumerate(gap[:WINDOW]):
            rest = candidate.text.removeprefix(prefix)
            there = rest.casefold().split()
            if len(rest) == len(candidate.text) and prefix:  # something else stood before it: as many words as now
                there = there[-len(words) :]
            if _same_field(document, candidate, said) or _alike(Counter(words), Counter(there)) >= ALIKE:
                found[document.id] = candidate.id
                del gap[: place + 1]
                break
    return found


def _same_field(new: Document, old: Document, said: str) -> bool:
    """Whether two documents are the same field with another value."""
    path = said.rpartition(": ")[0]
    return bool(path) and new.kind == old.kind == "field" and old.text.rpartition(": ")[0].endswith(path)


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


def keep_links(
    old: Iterable[Document], new: Sequence[Document], dead: Mapping[str, int]
) -> tuple[tuple[Document, ...], int]:
    """Links whose page is not where they say any more, but still here under another name; and how many.

    `dead` says how many links of a document lead nowhere. Where it had links to documents that are still there and that
    nothing else accounts for, those are they: a file was renamed, and this one has its old name.
    """
    before = {document.id: document.links for document in old}
    here = {document.id for document in new}
    made, count = list[Document](), 0
    for document in new:
        missing = [id for id in before.get(document.id, ()) if id in here and id not in document.links]
        kept = tuple(missing[: dead.get(document.id, 0)])
        count += len(kept)
        made.append(msgspec.structs.replace(document, links=document.links + kept) if kept else document)
    return tuple(made), count


# -- support documents of questions -----------------------------------------------------------------------------------


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
