"""A world: documents, questions with their golds, splits. What every world has, whoever made it.

The people universe, PhantomWiki, a user's own corpus all become these values; nothing below this line knows which one
it is looking at. `facts` carries whatever else a world wants to keep (the people of the universe, say) as plain JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import (
    atomic_dir,
    digest,
    digest_of,
    encode,
    is_text,
    pretty,
    read_lines,
    read_value,
    write_lines,
)
from kbgym.errors import BadInput

SPLITS = ("train", "test_in", "test_out", "eval")


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in a user's files a document's sentence stands."""

    file: str
    start: int
    end: int


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """One self-contained sentence. `about` names the entities (person ids) it speaks of, subject first.

    `links` are documents its text already links to; an initial store has them as links.
    """

    id: str
    text: str
    kind: str = ""
    about: tuple[str, ...] = ()
    source: Source | None = None
    links: tuple[str, ...] = ()


class Key(msgspec.Struct, frozen=True, order=True):
    """A slot of a question: a person, a city, a job, a hobby (or whatever kinds a world has)."""

    kind: str
    value: str


class Question(msgspec.Struct, frozen=True):
    """A question with every accepted gold and the ids of all documents its answer depends on."""

    id: str
    split: str
    class_: str = msgspec.field(name="class")
    template: str
    text: str
    golds: tuple[str, ...]
    keys: tuple[Key, ...] = ()
    support: tuple[str, ...] = ()
    unanswerable: bool = False


class SentenceForm(msgspec.Struct, frozen=True):
    """How some sentences of a world are built, what changes in capitals, and one of them."""

    form: str
    example: str


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a world's documents are about in one paragraph, the forms of their sentences, kinds of keys in plain words.

    What is empty is left for the world's kind to work out: see `kinds.description_of`.
    """

    about: str = ""
    forms: tuple[SentenceForm, ...] = ()
    keys: tuple[str, ...] = ()


class World(msgspec.Struct, frozen=True):
    """Documents and questions, checked when made: ids unique, supports real, texts writable.

    One without documents has them elsewhere, in a store: what supports its questions is not checked.
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
                    raise BadInput(f"question {question.id} is supported by {support!r}, which is no document.")

    def split(self, name: str) -> tuple[Question, ...]:
        return tuple(question for question in self.questions if question.split == name)

    @property
    def splits(self) -> dict[str, int]:
        """How many questions each split has, known splits first."""
        names = dict.fromkeys([*SPLITS, *(question.split for question in self.questions)])
        counts = {name: len(self.split(name)) for name in names}
        return {name: count for name, count in counts.items() if count}

    @property
    def description(self) -> Description | None:
        """What `world.json` itself says its documents are; a plain text is the paragraph."""
        said = self.facts.get("description")
        if isinstance(said, str):
            return Description(said)
        try:
            return msgspec.convert(said, Description | None)
        except msgspec.ValidationError as error:
            raise BadInput(f"the description in world.json is none (about, forms, keys): {error}.") from error

    @property
    def hash(self) -> str:
        """Changes when any byte of documents, questions or facts does."""
        return digest(b"".join(digest_of(part).encode() for part in (self.documents, self.questions, self.facts)))

    def save(self, out: Path) -> None:
        """Write the three files, all or nothing."""
        with atomic_dir(out) as folder:
            write_lines(folder / "documents.jsonl", self.documents)
            write_lines(folder / "questions.jsonl", self.questions)
            facts = pretty(self.facts) if len(self.documents) < 100_000 else encode(self.facts).decode() + "\n"
            (folder / "world.json").write_text(facts, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, elsewhere: bool = False) -> World:
        """The world in a folder; where its documents may be `elsewhere`, the folder need not have them."""
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
            raise BadInput(f"document {document.id} links to {target!r}, which is no document.")
    if document.id in document.links or len(set(document.links)) < len(document.links):
        raise BadInput(f"document {document.id} links to itself, or to another document twice.")


def _unique(what: str, ids: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    for id in ids:
        if id in seen:
            raise BadInput(f"{what} id {id!r} stands twice.")
        seen.add(id)
    return seen
