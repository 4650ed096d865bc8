"""Documents from files, with stable ids, links, and a report of what was omitted."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from kbgym.canonical import digest
from kbgym.corpus.blocks import TABLES, folded
from kbgym.corpus.files import Problem, walk
from kbgym.corpus.passages import DraftDocument, passages, sentences
from kbgym.corpus.reader_process import reader_process
from kbgym.corpus.statements import Statement
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.worlds.world import Document

_OTHER_SITE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")
_ENDINGS = ("", ".md", ".html", ".rst", ".markdown", "/index.md", "/index.html", "/README.md", "/index.rst")
Unit = Literal["passage", "sentence"]
Quote = tuple[str, str, str]  # per statement: the id of its document, its text, and its text with context
LINK, HIDDEN = "link target", "hidden character"
REASONS: dict[str, str] = TABLES["omissions"]
MOST_TEXTS = 1_000  # examples per kind
MOST_TEXT = 200  # characters shown per example


class ReadingOptions(msgspec.Struct, frozen=True):
    """Options of reading files."""

    language: str = "en"
    unit: Unit = "passage"
    links: bool = False
    on_error: Literal["refuse", "skip"] = "refuse"
    site: str = ""  # URL at which the files are published: links to it are links between them
    about: str = ""  # the user's description of the documents


class Loss(msgspec.Struct):
    """One kind of omission: its count, its characters, and the first examples."""

    what: str
    why: str
    count: int = 0
    characters: int = 0
    texts: list[str] = []

    def add(self, text: str) -> None:
        self.count += 1
        self.characters += len(text)
        if len(self.texts) < MOST_TEXTS:
            shown = folded(text)
            self.texts.append(shown if len(shown) <= MOST_TEXT else f"{shown[: MOST_TEXT - 1]}…")


class Corpus(msgspec.Struct):
    """The documents, and a report of the import."""

    documents: list[Document] = []
    files: int = 0
    bytes: int = 0  # of the files read
    empty: list[str] = []  # files read that contain no document
    ignored: list[Problem] = []
    skipped: list[Problem] = []
    lost: list[Loss] = []
    long_sentences: int = 0
    dead_links: int = 0
    own: dict[str, str] = {}  # id to the text without its prefix
    quotes: list[Quote] = []

    @property
    def characters(self) -> int:
        """Return the number of characters of all documents."""
        return sum(len(document.text) for document in self.documents)


def read_corpus(
    paths: Sequence[Path], options: ReadingOptions, leave_out: Sequence[Path] = (), tick: ProgressCallback | None = None
) -> Corpus:
    """Return every document of the files at these paths."""
    reader = reader_process()
    reader.start()  # during the search for files
    found = walk(paths, leave_out)
    corpus = Corpus(ignored=found.ignored, skipped=found.problems)
    losses = {what: Loss(what, why) for what, why in REASONS.items()}
    said, targets = list[Statement](), list[tuple[str, str]]()  # file and target of every link
    total, done = sum(file.size for file in found.files), 0
    for file, reply in zip(found.files, reader.read(found.files, options.language), strict=True):
        done += file.size
        if reply.error:
            corpus.skipped.append(Problem(file.name, reply.error))
            continue
        said += reply.statements
        corpus.files += 1
        corpus.bytes += file.size
        corpus.long_sentences += reply.long_sentences
        corpus.empty += [] if reply.statements else [file.name]
        losses[HIDDEN].count += reply.hidden
        losses[HIDDEN].characters += reply.hidden
        for what, text in reply.lost:
            if what == LINK:
                targets.append((file.name, text))
            elif what:
                losses[what].add(text)
        if tick:
            tick(done, total, f"{len(said):,} statements")
    if corpus.skipped and options.on_error == "refuse":
        raise BadInput(_refusal(corpus.skipped))
    if not said:
        raise BadInput(_nothing(corpus))
    drafts = (sentences if options.unit == "sentence" else passages)(said)
    resolver = _add_documents(drafts, corpus, options)
    for name, target in targets:
        words = (target, f"[[{target}", *target.split())
        if resolver is None or not any(resolver.resolve(word, name) for word in words):
            losses[LINK].add(target)
    corpus.lost = [loss for loss in losses.values() if loss.count]
    return corpus


def _refusal(problems: Sequence[Problem]) -> str:
    shown = "; ".join(f"{problem.file} ({problem.reason})" for problem in problems[:5])
    more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
    return f"cannot import {shown}{more}; repair or remove what is wrong, or leave it out with --set on_error=skip."


def _nothing(corpus: Corpus) -> str:
    """Return the message for an import without documents."""
    reasons = dict.fromkeys(problem.reason for problem in corpus.ignored if problem.reason != "hidden")
    if corpus.files or not reasons:
        return "there is no text in these files."
    names = ", ".join([problem.file for problem in corpus.ignored if problem.reason != "hidden"][:3])
    return f"none of these files is read, such as {names} ({'; '.join(list(reasons)[:8])})."


def _add_documents(drafts: list[DraftDocument], corpus: Corpus, options: ReadingOptions) -> LinkResolver | None:
    """Turn drafts into documents with ids and links; return the resolver of links, if there are any."""
    ids = make_ids(drafts)
    resolver = LinkResolver(drafts, ids, options.site) if options.links or options.site else None
    quotes: dict[int, Quote] = {}
    for name, one in zip(ids, drafts, strict=True):
        links, dead = resolver.links(one, name) if resolver else ((), 0)
        corpus.dead_links += dead
        about = (one.title,) if one.title else ()
        corpus.documents.append(Document(name, one.text, one.kind, about, one.source, links, one.fields))
        corpus.own[name] = one.own
        for part in one.parts:  # a card may share a statement with a passage, which comes later and takes precedence
            quotes[id(part)] = (name, part.own, part.prefix + part.own)
    corpus.quotes = list(quotes.values())
    return resolver


# -- ids and links ----------------------------------------------------------------------------------------------------


def document_id(file: str, own: str, ordinal: int = 0) -> str:
    """Return an id derived from the file and the text, which is stable when the text moves in its file."""
    said = f"{file}\0{own}\0{ordinal or ''}"
    return f"{_slug(file)}-{digest(said.encode())[:10]}"


@lru_cache(64)
def _slug(file: str) -> str:
    stem = posixpath.splitext(posixpath.basename(file))[0]
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:24].rstrip("-") or "file"


def make_ids(drafts: Sequence[DraftDocument]) -> list[str]:
    """Return a unique id for every draft."""
    ids: dict[str, None] = {}
    repeats: Counter[tuple[str, str]] = Counter()
    for one in drafts:
        said = (one.source.file, one.own)
        while (id := document_id(*said, repeats[said])) in ids:
            repeats[said] += 1
        ids[id] = None
    return list(ids)


class LinkResolver:
    """Resolves a link target to the first document of the page.

    `site` is the URL at which the pages are published: links to it are links between them. A page is found by its file,
    by the address in its front matter, or by a label in it.
    """

    def __init__(self, drafts: Sequence[DraftDocument], ids: Sequence[str], site: str = "") -> None:
        self._site = re.sub(r"^[a-zA-Z]+://", "", site).strip("/")
        self._first: dict[str, str] = {}
        for id, one in zip(ids, drafts, strict=True):
            for name in one.first_of:
                self._first.setdefault(name, id)
        for name, id in list(self._first.items()):  # a wiki link may name a file without its extension
            if name.startswith("file:"):
                stem = posixpath.splitext(name.removeprefix("file:"))[0].casefold()
                self._first.setdefault(f"title:{stem}", id)
                self._first.setdefault(f"title:{posixpath.basename(stem)}", id)

    def links(self, draft: DraftDocument, id: str) -> tuple[tuple[str, ...], int]:
        """Return the documents that a draft links to, and the number of its links to missing pages."""
        targets: dict[str, None] = {}
        dead = 0
        for name in draft.names:
            target = self.resolve(name, draft.source.file)
            if target is None:
                dead += 1
            elif target and target != id:
                targets[target] = None
        return tuple(targets), dead

    def resolve(self, name: str, file: str) -> str | None:
        """Return the document a link leads to: empty for another site or the same page, None if it is missing."""
        if name.startswith("[["):
            page = name.removeprefix("[[").partition("#")[0].strip().casefold()
            return self._first.get(f"title:{page}") if page else ""
        path = name.partition("#")[0].partition("?")[0]
        published = re.sub(r"^(?:https?:)?//", "", path)
        if self._site and (published == self._site or published.startswith(f"{self._site}/")):
            return self._published(published.removeprefix(self._site).strip("/"))
        if not path or _OTHER_SITE.match(path):
            return ""
        if path[0] == "/":
            return self._published(path.strip("/"))
        return self._file(posixpath.normpath(posixpath.join(posixpath.dirname(file), path)))

    def _published(self, path: str) -> str | None:
        """Return a page by its address below the site or the imported folder."""
        return self._first.get(f"address:{path}") or self._file(posixpath.normpath(path) if path else "")

    def _file(self, place: str) -> str | None:
        stem = re.sub(r"\.html?$", "", place)
        names = (f"file:{f'{base}{ending}'.lstrip('/')}" for base in (place, stem) for ending in _ENDINGS)
        return next((self._first[name] for name in names if name in self._first), None)
