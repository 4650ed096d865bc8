"""Worlds: documents, questions with their golds, splits, and the source pages of documents.

The people benchmark, PhantomWiki and a user's own corpus all become these values. `facts` is plain JSON with additional
data of a world, such as the people of the benchmark.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import atomic_dir, digest, digest_of, encode, is_text, pretty, read_lines, read_value, write_lines
from kbgym.errors import BadInput

_TABLE_FILES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")  # each row is a page
_DEEPER = " > "
SPLITS = ("train", "test_in", "test_out", "eval")


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """The span of a user's file that a document was read from."""

    file: str
    start: int
    end: int


Field = tuple[str, str]


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """A self-contained sentence or passage.

    Attributes:
        id: The id.
        text: The text.
        kind: What it states, such as `job`; empty if unknown.
        about: The entities (person ids) that it mentions, subject first.
        source: The file and span it was imported from.
        links: Documents that its text links to; they become links of the initial store.
        fields: The fields of the page as pairs of label and value, if it is the card of an imported page.
    """

    id: str
    text: str
    kind: str = ""
    about: tuple[str, ...] = ()
    source: Source | None = None
    links: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()


class Key(msgspec.Struct, frozen=True, order=True):
    """A slot of a question.

    Attributes:
        kind: In the people benchmark `person`, `city`, `job` or `hobby`.
        value: The value in the slot.
    """

    kind: str
    value: str


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question with its expected answers.

    Attributes:
        id: The id.
        split: `train`, `test_in`, `test_out` or `eval`.
        class_: The class, such as QC2 (`class` in files).
        template: The template, or the kind of an imported question.
        text: The text.
        golds: All accepted answers.
        keys: The values of its slots.
        support: The ids of all documents that the answer depends on; empty if unknown.
        unanswerable: True if the documents do not say.
        group: The group that results are reported by, such as `paraphrase`; not written if empty.
        members: The elements of an answer that is a set; not written if empty.
    """

    id: str
    split: str
    class_: str = msgspec.field(name="class")
    template: str
    text: str
    golds: tuple[str, ...]
    keys: tuple[Key, ...] = msgspec.field(default_factory=lambda: ())
    support: tuple[str, ...] = msgspec.field(default_factory=lambda: ())
    unanswerable: bool = msgspec.field(default_factory=bool)
    group: str = ""
    members: tuple[str, ...] = ()


class SentenceForm(msgspec.Struct, frozen=True):
    """The form of some sentences, with its variable parts in capitals, and an example."""

    form: str
    example: str


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a world's documents in one paragraph, the forms of their sentences, and their kinds of keys.

    Empty fields are filled in by the world's kind: see `kinds.description_of`.
    """

    about: str = ""
    forms: tuple[SentenceForm, ...] = ()
    keys: tuple[str, ...] = ()


class World(msgspec.Struct, frozen=True, dict=True):
    """Documents and questions, validated on construction: unique ids, existing supports, encodable texts.

    Attributes:
        documents: The documents; none if a store holds them, and supports are then not checked.
        questions: The questions of all splits.
        facts: What the kind of world needs to know, such as its seed and description.
    """

    documents: tuple[Document, ...]
    questions: tuple[Question, ...] = ()
    facts: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        ids = _unique("document", (document.id for document in self.documents))
        _unique("question", (question.id for question in self.questions))
        for document in self.documents:
            if not document.text.strip():
                raise BadInput(f"document {document.id} has no text.")
            if not is_text(document.text) or not is_text(document.id):
                raise BadInput(f"document {document.id!r} holds characters that are not Unicode text.")
            if document.links:
                _check_links(document, ids)
        for question in self.questions:
            if not question.golds:
                raise BadInput(f"question {question.id} has no gold.")
            for support in question.support if ids else ():
                if support not in ids:
                    raise BadInput(f"question {question.id} is supported by {support!r}, which is not a document.")

    def __repr__(self) -> str:
        return f"<World, {len(self.documents):,} documents, {len(self.questions):,} questions>"

    @cached_property
    def places(self) -> Places:
        """Return the places of all documents in their sources."""
        return Places(self.documents)

    def place_of(self, id: str) -> Place | None:
        """Return the place of a document, or None if it has no page."""
        return self.places.place_of(id)

    def split(self, name: str) -> tuple[Question, ...]:
        """Return the questions of a split."""
        return tuple(question for question in self.questions if question.split == name)

    @property
    def splits(self) -> dict[str, int]:
        """Return the number of questions in each split, standard splits first."""
        names = dict.fromkeys([*SPLITS, *(question.split for question in self.questions)])
        counts = {name: len(self.split(name)) for name in names}
        return {name: count for name, count in counts.items() if count}

    @property
    def description(self) -> Description | None:
        """Return the description in `world.json`, if any; a plain string is the paragraph."""
        said = self.facts.get("description")
        if isinstance(said, str):
            return Description(said)
        try:
            return msgspec.convert(said, Description | None)
        except msgspec.ValidationError as error:
            raise BadInput(f"the description in world.json is invalid (about, forms, keys): {error}.") from error

    @property
    def hash(self) -> str:
        """Return a digest of all bytes of documents, questions and facts."""
        return digest(b"".join(digest_of(part).encode() for part in (self.documents, self.questions, self.facts)))

    def save(self, out: Path) -> None:
        """Write the three files atomically."""
        with atomic_dir(out) as folder:
            write_lines(folder / "documents.jsonl", self.documents)
            write_lines(folder / "questions.jsonl", self.questions)
            facts = pretty(self.facts) if len(self.documents) < 100_000 else encode(self.facts).decode() + "\n"
            (folder / "world.json").write_text(facts, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, elsewhere: bool = False) -> World:
        """Read the world in a folder; with `elsewhere`, the folder need not hold its documents."""
        documents, questions, facts = (folder / name for name in ("documents.jsonl", "questions.jsonl", "world.json"))
        if not documents.is_file() and not (elsewhere and questions.is_file()):
            raise BadInput(f"{folder} is not a world: it has no documents.jsonl.")
        return cls(
            documents=tuple(read_lines(documents, Document)) if documents.is_file() else (),
            questions=tuple(read_lines(questions, Question)) if questions.is_file() else (),
            facts=read_value(facts, dict[str, Any]) if facts.is_file() else {},
        )


def _check_links(document: Document, ids: set[str]) -> None:
    for target in document.links:
        if target not in ids:
            raise BadInput(f"document {document.id} links to {target!r}, which is not a document.")
    if document.id in document.links or len(set(document.links)) < len(document.links):
        raise BadInput(f"document {document.id} links to itself, or to another document twice.")


def _unique(what: str, ids: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    for id in ids:
        if id in seen:
            raise BadInput(f"{what} id {id!r} occurs twice.")
        seen.add(id)
    return seen


# -- source pages ------------------------------------------------------------------------------------------------------


class SourcePage(msgspec.Struct, frozen=True):
    """A page and its documents in their order on it.

    A page is a file, a row of a table file, or the subject of documents in a public set. Generated worlds have none.
    """

    name: str
    title: str
    documents: tuple[Document, ...]


def page_of_source(document: Document) -> str | None:
    """Return the name of a document's page, or None."""
    if document.source is not None:
        source = document.source
        by_row = source.file.lower().endswith(_TABLE_FILES)
        return f"{source.file}:{source.start}-{source.end}" if by_row else source.file
    title = document.about[0] if document.about else ""
    return title if title and document.text.startswith(f"{title}: ") else None


def pages_of(documents: Iterable[Document]) -> dict[str, str]:
    """Return the page of each document that has one, by id."""
    found = ((document.id, page_of_source(document)) for document in documents)
    return {id: page for id, page in found if page is not None}


def source_pages(documents: Iterable[Document]) -> list[SourcePage]:
    """Return all pages, in the order of their first documents."""
    grouped: dict[str, list[Document]] = {}
    for document in documents:
        if (page := page_of_source(document)) is not None:
            grouped.setdefault(page, []).append(document)
    return [
        SourcePage(page, _title(page, found), tuple(sorted(found, key=_position))) for page, found in grouped.items()
    ]


class Place(msgspec.Struct, frozen=True):
    """The place of a document: its page, the page's title, the span in its file, and its position on the page.

    `position` counts from 0. Documents without a file, such as those of a public set, have an empty `file`.
    """

    page: str
    title: str
    file: str
    start: int
    end: int
    position: int


class Places:
    """The places of documents, and the documents and fields of pages."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._places: dict[str, Place] = {}
        self._pages: dict[str, tuple[Document, ...]] = {}
        for page in source_pages(documents):
            self._pages[page.name] = page.documents
            for position, one in enumerate(page.documents):
                source = one.source or Source("", 0, 0)
                title = one.about[0] if one.source and one.about else page.title
                self._places[one.id] = Place(page.name, title, source.file, source.start, source.end, position)

    def place_of(self, id: str) -> Place | None:
        """Return the place of a document, or None if it has no page."""
        return self._places.get(id)

    def on_page(self, page: str) -> tuple[str, ...]:
        """Return the ids of a page's documents in reading order."""
        return tuple(document.id for document in self._pages.get(page, ()))

    def fields_of(self, page: str) -> tuple[Field, ...]:
        """Return the fields of a page as pairs of label and value."""
        return tuple(field for document in self._pages.get(page, ()) for field in document.fields)


def _position(one: Document) -> tuple[int, bool]:
    """Return the sort key of the place in the file; documents of a public set keep their order."""
    return (one.source.start, one.kind != "card") if one.source else (0, False)


def _title(page: str, found: list[Document]) -> str:
    """Return the most common prefix before a colon, or else the file name."""
    first = found[0]
    if first.source is None:
        return page
    said = (document.text.partition(": ")[0].partition(_DEEPER)[0] for document in found if ": " in document.text)
    titles = Counter(filter(None, map(str.strip, said)))
    if titles:
        title, times = titles.most_common(1)[0]
        if times > 1 or len(found) <= 2:
            return title
    stem = posixpath.splitext(posixpath.basename(first.source.file))[0]
    return " ".join(stem.replace("_", " ").replace("-", " ").split())
