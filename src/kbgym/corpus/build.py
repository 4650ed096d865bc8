"""Files into documents: every file whole or not at all, ids that stay when nothing changed, links, and a report."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from kbgym.corpus.blocks import Block, Broken, Page
from kbgym.corpus.files import FoundFile, Problem, read_text, walk
from kbgym.corpus.hypertext import read_html
from kbgym.corpus.markdown import read_markdown
from kbgym.corpus.rewriting import AFTER, BEFORE, Passage, Rewrite
from kbgym.corpus.rows import read_csv, read_jsonl, read_text_file
from kbgym.corpus.sentences import MOST_CONTEXT, MOST_TEXT, clean, context, dangles, pieces, split
from kbgym.errors import BadInput
from kbgym.worlds.world import Document, Source

Tick = Callable[[int, int, str], None]
ROOM = 2 * MOST_CONTEXT + 10  # what title, sections and an introduction may take of a document's length


class ReadingOptions(msgspec.Struct, frozen=True):
    """How files become documents."""

    language: str = "en"
    links: bool = False
    code: Literal["skip", "keep"] = "skip"
    on_error: Literal["refuse", "skip"] = "refuse"
    rewriter: str = ""  # who makes sentences stand alone, if anybody does
    about: str = ""  # what the documents are, in the words of whoever imports them


class Corpus(msgspec.Struct):
    """The documents, and what happened on the way to them."""

    documents: list[Document] = []
    files: int = 0
    ignored: int = 0
    skipped: list[Problem] = []
    code_blocks: int = 0
    long_sentences: int = 0
    dead_links: int = 0
    without_context: dict[str, str] = {}  # id: the sentence as it stands in the file
    originals: dict[str, str] = {}  # id: what a rewritten document would say without its rewriting
    asked: int = 0  # sentences that were given to a rewriter
    not_rewritten: int = 0  # of them, those it made nothing usable of


class _Draft(msgspec.Struct):
    """A document to be: what of it stands in the file, what was put before it, and the links it names."""

    own: str
    prefix: str
    kind: str
    source: Source
    names: list[str]
    heading: str = ""
    lead: str = ""
    first_of: tuple[str, ...] = ()
    page: int = 0


def read_corpus(
    paths: Sequence[Path],
    options: ReadingOptions,
    leave_out: Sequence[Path] = (),
    tick: Tick | None = None,
    rewrite: Rewrite | None = None,
) -> Corpus:
    """Every document of the files at these paths. `rewrite` is asked once all of them are read and in order."""
    found = walk(paths, leave_out)
    corpus = Corpus(ignored=found.ignored, skipped=list(found.problems))
    drafts: list[_Draft] = []
    total, done = sum(file.size for file in found.files), 0
    for file in found.files:
        try:
            drafts += _read_file(file, options, corpus)
            corpus.files += 1
        except Broken as broken:
            corpus.skipped.append(Problem(file.name, str(broken)))
        done += file.size
        if tick:
            tick(done, total, f"{len(drafts):,} documents")
    if corpus.skipped and options.on_error == "refuse":
        raise BadInput(_refusal(corpus.skipped))
    if not drafts:
        raise BadInput("there is no text in these files.")
    _finish(drafts, _texts(drafts, corpus, rewrite), corpus, options.links)
    return corpus


def _refusal(problems: Sequence[Problem]) -> str:
    shown = "; ".join(f"{problem.file} ({problem.reason})" for problem in problems[:5])
    more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
    return f"cannot import {shown}{more}; repair or remove what is wrong, or leave it out with --on-error skip."


def _read_file(file: FoundFile, options: ReadingOptions, corpus: Corpus) -> list[_Draft]:
    """A file's drafts; counts go to the report only once the whole file is read."""
    drafts: list[_Draft] = []
    code = long = 0
    fallback = re.sub(r"[\s_-]+", " ", posixpath.splitext(posixpath.basename(file.name))[0]).strip()
    for number, page in enumerate(_pages(file, options.code == "keep")):
        of_page, cut = _page(page, file.name, page.title or fallback, options.language, number)
        if of_page:
            titles = (f"title:{page.title.casefold()}",) if page.title else ()
            of_page[0].first_of = titles if drafts else (f"file:{file.name}", *titles)
        drafts += of_page
        code, long = code + page.code_blocks, long + cut
    corpus.code_blocks += code
    corpus.long_sentences += long
    return drafts


def _pages(file: FoundFile, keep_code: bool) -> Iterator[Page]:
    match file.format:
        case "jsonl":
            yield from read_jsonl(file)
        case "csv":
            yield from read_csv(file)
        case "markdown":
            yield read_markdown(read_text(file), keep_code)
        case "html":
            yield read_html(read_text(file), keep_code=keep_code)
        case _:
            yield read_text_file(read_text(file))


def _page(page: Page, name: str, title: str, language: str, place: int = 0) -> tuple[list[_Draft], int]:
    drafts: list[_Draft] = []
    cut = 0
    title = clean(title)
    spans_of: dict[int, list[tuple[int, int]]] = {}
    for block in page.blocks:
        text = block.text.text
        spans = [(0, len(text))] if block.whole else split(text, language)
        spans_of[id(block)] = spans
        above = context(title, tuple(clean(section) for section in block.sections))
        lead = _lead(block, spans_of)
        for number, (start, end) in enumerate(spans, 1):
            if block.introduces and number == len(spans) and text[end - 1] == ":":
                continue  # every item it introduces carries it
            parts = list(pieces(text, start, end, MOST_TEXT - ROOM))
            cut += len(parts) > 1
            for first, last in parts:
                own = clean(text[first:last])
                if not any(c.isalnum() for c in own):
                    continue
                # An item that is no sentence ("Mate: Petra Lind") says nothing without its section.
                fragment = block.kind == "item" and not lead and own[-1] not in ".!?…。"
                needed = block.whole or fragment or dangles(lead + own)
                source = Source(name, *(block.span or block.text.span(first, last)))
                names = [target for at, target in block.links if first <= at < last]
                prefix = (above if needed else "") + lead
                drafts.append(_Draft(own, prefix, block.kind, source, names, above, lead, page=place))
    return drafts, cut


def _lead(block: Block, spans_of: dict[int, list[tuple[int, int]]]) -> str:
    """What introduces a list's items, as the beginning of each: `The crew are: `."""
    under, leads = block.under, list[str]()
    while under is not None and len(leads) < 5:
        spans = spans_of.get(id(under))
        if spans and under is not block:
            said = clean(under.text.text[slice(*spans[-1])])
            leads.append(said if said.endswith(":") else said + ":")
        under = under.under
    return f"{' '.join(reversed(leads))[-MOST_CONTEXT:]} " if leads else ""


# -- texts ------------------------------------------------------------------------------------------------------------


def _texts(drafts: Sequence[_Draft], corpus: Corpus, rewrite: Rewrite | None) -> list[str]:
    """What each document says: its sentence with what it needs before it, or what a rewriter made of it."""
    texts = [draft.prefix + draft.own for draft in drafts]
    if rewrite is None:
        return texts
    places = [place for place, draft in enumerate(drafts) if draft.kind != "code"]
    for place, text in zip(places, rewrite([_passage(drafts, place) for place in places]), strict=True):
        if text is None:
            corpus.not_rewritten += 1
        elif clean(text) != drafts[place].own:  # one that stands alone already keeps its title and section, if any
            texts[place] = clean(text)
    corpus.asked = len(places)
    return texts


def _passage(drafts: Sequence[_Draft], place: int) -> Passage:
    draft = drafts[place]
    here = (draft.source.file, draft.page)

    def around(places: range) -> tuple[str, ...]:
        near = (drafts[one] for one in places if 0 <= one < len(drafts))
        return tuple(one.own for one in near if (one.source.file, one.page) == here and one.kind != "code")

    return Passage(
        draft.own,
        draft.heading.removesuffix(": "),
        draft.lead.strip(),
        around(range(place - BEFORE, place)),
        around(range(place + 1, place + 1 + AFTER)),
    )


# -- ids and links ----------------------------------------------------------------------------------------------------


def document_id(file: str, own: str, ordinal: int = 0) -> str:
    """From the file and the sentence alone, so that it stays the same wherever the sentence moves in its file."""
    said = hashlib.sha256(f"{file}\0{own}\0{ordinal or ''}".encode()).hexdigest()
    return f"{_slug(file)}-{said[:10]}"


@lru_cache(64)
def _slug(file: str) -> str:
    stem = posixpath.splitext(posixpath.basename(file))[0]
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:24].rstrip("-") or "file"


def _finish(drafts: list[_Draft], texts: list[str], corpus: Corpus, with_links: bool) -> None:
    ids: dict[str, None] = {}
    first: dict[str, str] = {}
    repeats: Counter[tuple[str, str]] = Counter()
    for draft in drafts:
        said = (draft.source.file, draft.own)
        while (id := document_id(*said, repeats[said])) in ids:
            repeats[said] += 1
        ids[id] = None
        for name in draft.first_of:
            first.setdefault(name, id)
    if with_links:
        for name, id in list(first.items()):  # a wiki link may also name a file without its ending
            if name.startswith("file:"):
                stem = posixpath.splitext(name.removeprefix("file:"))[0].casefold()
                first.setdefault(f"title:{stem}", id)
                first.setdefault(f"title:{posixpath.basename(stem)}", id)
    for id, draft, text in zip(ids, drafts, texts, strict=True):
        links = _links(draft, id, first, corpus) if with_links and draft.names else ()
        corpus.documents.append(Document(id, text, draft.kind, (), draft.source, links))
        if text != draft.prefix + draft.own:
            corpus.originals[id] = draft.prefix + draft.own
        elif draft.prefix:
            corpus.without_context[id] = draft.own


def _links(draft: _Draft, id: str, first: dict[str, str], corpus: Corpus) -> tuple[str, ...]:
    targets: dict[str, None] = {}
    for name in draft.names:
        target = _resolve(name, draft.source.file, first)
        if target is None:
            corpus.dead_links += 1
        elif target and target != id:
            targets[target] = None
    return tuple(targets)


def _resolve(name: str, file: str, first: dict[str, str]) -> str | None:
    """The document a link leads to: empty for what is outside the corpus or on the same page, none if it is missing."""
    if name.startswith("[["):
        page = name.removeprefix("[[").partition("#")[0].strip().casefold()
        return first.get(f"title:{page}") if page else ""
    path = name.partition("#")[0].partition("?")[0]
    if not path or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", path):
        return ""
    place = posixpath.normpath(path.lstrip("/") if path[0] == "/" else posixpath.join(posixpath.dirname(file), path))
    candidates = (place, f"{place}.md", f"{place}.html", f"{place}/index.md", f"{place}/index.html")
    return next((first[f"file:{candidate}"] for candidate in candidates if f"file:{candidate}" in first), None)
