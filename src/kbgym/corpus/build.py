"""Files into documents: every file whole or not at all, ids that stay when nothing changed, links, and a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kbgym.corpus.blocks import Broken
from kbgym.corpus.converting import Converter
from kbgym.corpus.files import FoundFile, Problem, walk
from kbgym.corpus.linking import LinkResolver, make_ids
from kbgym.corpus.losses import Loss, Losses
from kbgym.corpus.reading import fallback_title, read_file
from kbgym.corpus.rewriting import AFTER, BEFORE, Passage, Rewrite
from kbgym.corpus.sentences import clean
from kbgym.corpus.standalone import Statement, statements
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.sanitize import sanitize
from kbgym.worlds.world import Document


class ReadingOptions(msgspec.Struct, frozen=True):
    """How files become documents."""

    language: str = "en"
    links: bool = False
    code: Literal["skip", "keep"] = "keep"
    on_error: Literal["refuse", "skip"] = "refuse"
    rewriter: str = ""  # who makes sentences stand alone, if anybody does
    follow: bool = False  # symbolic links out of the folder
    site: str = ""  # where the files are published: links to it are links between them
    about: str = ""  # what the documents are, in the words of whoever imports them


class Corpus(msgspec.Struct):
    """The documents, and what happened on the way to them."""

    documents: list[Document] = []
    files: int = 0
    bytes: int = 0  # of the files that were read
    empty: list[str] = []  # files that were read and gave no document
    ignored: list[Problem] = []
    skipped: list[Problem] = []
    lost: list[Loss] = []
    code_blocks: int = 0
    long_sentences: int = 0
    dead_links: int = 0
    targets: list[tuple[str, str]] = []  # file and target of every link
    dead: dict[str, int] = {}  # id: how many of its links lead nowhere
    own: dict[str, str] = {}  # id: the sentence as it stands in the file
    originals: dict[str, str] = {}  # id: what a rewritten document would say without its rewriting
    asked: int = 0  # sentences that were given to a rewriter
    not_rewritten: int = 0  # of them, those it made nothing usable of

    @property
    def characters(self) -> int:
        """Of all documents."""
        return sum(len(document.text) for document in self.documents)


def read_corpus(
    paths: Sequence[Path],
    options: ReadingOptions,
    leave_out: Sequence[Path] = (),
    tick: ProgressCallback | None = None,
    rewrite: Rewrite | None = None,
) -> Corpus:
    """Every document of the files at these paths. `rewrite` is asked once all of them are read and in order."""
    found = walk(paths, leave_out, options.follow)
    corpus = Corpus(ignored=found.ignored, skipped=list(found.problems))
    said: list[Statement] = []
    losses = Losses()
    total, done = sum(file.size for file in found.files), 0
    with Converter() as converter:
        for file in found.files:

            def step(share: float, done: int = done, size: int = file.size) -> None:
                if tick:
                    tick(done + int(share * size), total, f"{len(said):,} documents")

            try:
                said.extend(_read_file(file, options, corpus, losses, converter, step))
                corpus.files += 1
                corpus.bytes += file.size
            except Broken as broken:
                corpus.skipped.append(Problem(file.name, str(broken)))
            step(1)
            done += file.size
    if corpus.skipped and options.on_error == "refuse":
        raise BadInput(_refusal(corpus.skipped))
    if not said:
        raise BadInput(_nothing(corpus))
    _finish(said, _texts(said, corpus, rewrite), corpus, options, losses)
    corpus.lost = losses.listed()
    return corpus


def _refusal(problems: Sequence[Problem]) -> str:
    shown = "; ".join(f"{problem.file} ({problem.reason})" for problem in problems[:5])
    more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
    return f"cannot import {shown}{more}; repair or remove what is wrong, or leave it out with --on-error skip."


def _nothing(corpus: Corpus) -> str:
    """There is no document: because nothing is in the files, or because none of them is read."""
    reasons = dict.fromkeys(problem.reason for problem in corpus.ignored if problem.reason != "hidden")
    if corpus.files or not reasons:
        return "there is no text in these files."
    names = ", ".join([problem.file for problem in corpus.ignored if problem.reason != "hidden"][:3])
    return f"none of these files is read, such as {names} ({'; '.join(list(reasons)[:8])})."


def _read_file(
    file: FoundFile,
    options: ReadingOptions,
    corpus: Corpus,
    losses: Losses,
    converter: Converter,
    step: Callable[[float], None],
) -> list[Statement]:
    """A file's statements; counts go to the report only once the whole file is read."""
    reading = read_file(file, options.code == "keep", converter, lambda share: step(share / 2))
    found: list[Statement] = []
    code = long = 0
    lost: list[tuple[str, str]] = []
    for number, page in enumerate(reading.pages):
        title = page.title or fallback_title(file.name)
        of_page, cut = statements(page, file.name, title, options.language, number, lambda share: step(0.5 + share / 2))
        if of_page:
            names = [f"title:{page.title.casefold()}"] if page.title else []
            names += [f"address:{address.strip('/')}" for address in page.addresses]
            first = next(
                (one for one in of_page if one.kind != "field"), of_page[0]
            )  # what a link to the page leads to
            first.first_of = (*names,) if found else (f"file:{file.name}", *names)
        found += of_page
        code, long = code + page.code_blocks, long + cut
        lost += page.lost
    corpus.code_blocks += code
    corpus.long_sentences += long
    if not found:
        corpus.empty.append(file.name)
    for what, text in lost:
        if what == "link target" and (options.links or options.site):
            corpus.targets.append((file.name, text))
        elif what:
            losses.add(what, text)
    if reading.text:
        losses.add_hidden(0 if reading.text.isascii() else sanitize(reading.text)[1])
        losses.account(reading.text, [one.prefix + one.own for one in found], (text for _, text in lost))
    return found


# -- texts ------------------------------------------------------------------------------------------------------------

_AS_THEY_ARE = ("code", "field")  # what no rewriter is asked about


def _texts(said: Sequence[Statement], corpus: Corpus, rewrite: Rewrite | None) -> list[str]:
    """What each document says: its sentence with what it needs before it, or what a rewriter made of it."""
    texts = [one.prefix + one.own for one in said]
    if rewrite is None:
        return texts
    places = [place for place, one in enumerate(said) if one.kind not in _AS_THEY_ARE]
    for place, text in zip(places, rewrite([_passage(said, place) for place in places]), strict=True):
        if text is None:
            corpus.not_rewritten += 1
        elif clean(text) != said[place].own:  # one that stands alone already keeps its title and section, if any
            texts[place] = clean(text)
    corpus.asked = len(places)
    return texts


def _passage(said: Sequence[Statement], place: int) -> Passage:
    this = said[place]

    def around(places: range) -> tuple[str, ...]:
        near = (said[one] for one in places if 0 <= one < len(said))
        here = (this.source.file, this.page)
        return tuple(one.own for one in near if (one.source.file, one.page) == here and one.kind not in _AS_THEY_ARE)

    return Passage(
        this.own,
        this.heading.removesuffix(": "),
        this.lead.strip(),
        around(range(place - BEFORE, place)),
        around(range(place + 1, place + 1 + AFTER)),
    )


def _finish(said: list[Statement], texts: list[str], corpus: Corpus, options: ReadingOptions, losses: Losses) -> None:
    """Statements as documents, with ids and links; a link that becomes none is lost."""
    ids = make_ids(said)
    resolver = LinkResolver(said, ids, options.site) if options.links or options.site else None
    for id, one, text in zip(ids, said, texts, strict=True):
        links, dead = resolver.links(one, id) if resolver and one.names else ((), 0)
        if dead:
            corpus.dead[id] = dead
        about = (one.title,) if one.title else ()
        corpus.documents.append(Document(id, text, one.kind, about, one.source, links))
        corpus.own[id] = one.own
        if text != one.prefix + one.own:
            corpus.originals[id] = one.prefix + one.own
    corpus.dead_links = sum(corpus.dead.values())
    for file, target in corpus.targets:
        if resolver is None or not any(
            resolver.resolve(word, file) for word in (target, f"[[{target}", *target.split())
        ):
            losses.add("link target", target)
