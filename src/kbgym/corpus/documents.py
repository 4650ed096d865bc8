"""Documents from files, with stable ids, links, and a report of what was omitted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kbgym.corpus.files import FoundFile, Problem, walk
from kbgym.corpus.linking import LinkResolver, make_ids
from kbgym.corpus.passages import DraftDocument, passages, sentences
from kbgym.corpus.reader_process import FileReading, reader_process
from kbgym.corpus.statements import Statement
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.worlds.world import Document

Unit = Literal["passage", "sentence"]
Quote = tuple[str, str, str]  # per statement: the id of its document, its text, and its text with context


class ReadingOptions(msgspec.Struct, frozen=True):
    """Options of reading files."""

    language: str = "en"
    unit: Unit = "passage"
    links: bool = False
    on_error: Literal["refuse", "skip"] = "refuse"
    follow: bool = False  # symbolic links that leave the folder
    site: str = ""  # URL at which the files are published: links to it are links between them
    about: str = ""  # the user's description of the documents


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
    targets: list[tuple[str, str]] = []  # file and target of every link
    dead: dict[str, int] = {}  # id to the number of its broken links
    own: dict[str, str] = {}  # id to the text without its prefix
    quotes: list[Quote] = []

    @property
    def characters(self) -> int:
        """Return the number of characters of all documents."""
        return sum(len(document.text) for document in self.documents)


def read_corpus(
    paths: Sequence[Path],
    options: ReadingOptions,
    leave_out: Sequence[Path] = (),
    tick: ProgressCallback | None = None,
) -> Corpus:
    """Return every document of the files at these paths."""
    reader = reader_process()
    reader.start()  # during the search for files
    found = walk(paths, leave_out, options.follow)
    corpus = Corpus(ignored=found.ignored, skipped=list(found.problems))
    said: list[Statement] = []
    losses = Losses()
    total, done = sum(file.size for file in found.files), 0
    for file, reading in zip(found.files, reader.read(found.files, options.language), strict=True):
        said += _add_file(file, reading, options, corpus, losses)
        done += file.size
        if tick:
            tick(done, total, f"{len(said):,} statements")
    if corpus.skipped and options.on_error == "refuse":
        raise BadInput(_refusal(corpus.skipped))
    if not said:
        raise BadInput(_nothing(corpus))
    _finish((sentences if options.unit == "sentence" else passages)(said), corpus, options, losses)
    corpus.lost = losses.listed()
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


def _add_file(
    file: FoundFile, reading: FileReading, options: ReadingOptions, corpus: Corpus, losses: Losses
) -> list[Statement]:
    """Add what a file's reader reported to the corpus, and return the statements; none if the file is refused."""
    if reading.end.error:
        corpus.skipped.append(Problem(file.name, reading.end.error))
        return []
    corpus.files += 1
    corpus.bytes += file.size
    corpus.long_sentences += reading.end.long_sentences
    if not reading.statements:
        corpus.empty.append(file.name)
    for what, text in reading.end.lost:
        if what == "link target" and (options.links or options.site):
            corpus.targets.append((file.name, text))
        elif what:
            losses.add(what, text)
    losses.add_hidden(reading.end.hidden)
    return reading.statements


def _finish(drafts: list[DraftDocument], corpus: Corpus, options: ReadingOptions, losses: Losses) -> None:
    """Turn drafts into documents with ids and links; links that cannot be resolved are reported as lost."""
    ids = make_ids(drafts)
    resolver = LinkResolver(drafts, ids, options.site) if options.links or options.site else None
    quotes: dict[int, Quote] = {}
    for name, one in zip(ids, drafts, strict=True):
        links, dead = resolver.links(one, name) if resolver else ((), 0)
        if dead:
            corpus.dead[name] = dead
        about = (one.title,) if one.title else ()
        corpus.documents.append(Document(name, one.text, one.kind, about, one.source, links, one.fields))
        corpus.own[name] = one.own
        for part in one.parts:  # a card may share a statement with a passage, which comes later and takes precedence
            quotes[id(part)] = (name, part.own, part.prefix + part.own)
    corpus.quotes = list(quotes.values())
    corpus.dead_links = sum(corpus.dead.values())
    for file, target in corpus.targets:
        if resolver is None or not any(
            resolver.resolve(word, file) for word in (target, f"[[{target}", *target.split())
        ):
            losses.add("link target", target)


# -- omissions -------------------------------------------------------------------------------------------------------

REASONS = {
    "comment": "comments are for those who write the file",
    "link target": "a link is its words; with --links or `site` also a link between documents",
    "image": "of an image there is only its description",
    "tag": "markup without words",
    "script or style": "code of a web page",
    "navigation or form": "the same on every page of a site",
    "language of a code block": "markup without words",
    "heading": "there is no text under it",
    "column": "the column is empty in every row",
    "table of contents": "the headings of the page once more",
    "directive": "an instruction for printing",
    "hidden character": "it is invisible, and an agent might obey it",
    "other": "markup, or something no reader understood",
}
MOST_TEXTS = 1_000  # examples per kind
MOST_TEXT = 200  # characters shown per example


class Loss(msgspec.Struct):
    """One kind of omission: its count, its characters, and the first examples."""

    what: str
    why: str
    count: int = 0
    characters: int = 0
    texts: list[str] = []


class Losses:
    """Accumulates omissions over a corpus."""

    def __init__(self) -> None:
        self._kinds: dict[str, Loss] = {}

    def add_hidden(self, count: int) -> None:
        """Count invisible characters, which are omitted."""
        if count:
            loss = self._kinds.setdefault("hidden character", Loss("hidden character", REASONS["hidden character"]))
            loss.count, loss.characters = loss.count + count, loss.characters + count

    def add(self, what: str, text: str) -> None:
        loss = self._kinds.setdefault(what, Loss(what, REASONS[what]))
        loss.count += 1
        loss.characters += len(text)
        if len(loss.texts) < MOST_TEXTS:
            shown = " ".join(text.split())
            loss.texts.append(shown if len(shown) <= MOST_TEXT else f"{shown[: MOST_TEXT - 1]}…")

    def listed(self) -> list[Loss]:
        return [self._kinds[what] for what in REASONS if what in self._kinds]
