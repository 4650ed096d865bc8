"""Worlds from the official files of HotpotQA, 2WikiMultihopQA and MuSiQue.

Every sentence of every paragraph, distractors included, is a document that begins with its page's title; a sentence of
several questions is one document. HotpotQA and 2Wiki name supporting sentences. MuSiQue names supporting paragraphs, so
all their sentences are supports. MuSiQue's unanswerable questions are left out: the paragraphs taken away from them
belong to other questions, so a common store can answer them.

Models were trained on these texts, which `facts` records as `public_text`: a report on such a world also requires a
score without a store.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from kbgym.canonical import decode, digest
from kbgym.corpus.questions import MadeQuestions, QuestionRow, make_questions
from kbgym.corpus.sentences import MOST_TEXT, clean, split
from kbgym.errors import BadInput
from kbgym.worlds.world import Document, Key, World

MOST_FILE = 4 << 30
T = TypeVar("T")


class _Hotpot(msgspec.Struct):
    """An entry of HotpotQA or 2Wiki, which share this shape; further fields of 2Wiki are ignored."""

    id: str = msgspec.field(name="_id")
    question: str
    context: list[tuple[str, list[str]]]
    answer: str | None = None
    type: str = ""
    supporting_facts: list[tuple[str, int]] | None = None


class _Paragraph(msgspec.Struct):
    title: str
    paragraph_text: str
    is_supporting: bool | None = None


class _Musique(msgspec.Struct):
    id: str
    question: str
    paragraphs: list[_Paragraph]
    answer: str | None = None
    answer_aliases: list[str] = []
    answerable: bool = True


class PublicQuestion(msgspec.Struct, frozen=True):
    """A question of any of the three sets, with its paragraphs as sentences and its supports as positions in them."""

    id: str
    text: str
    golds: tuple[str, ...]
    template: str
    paragraphs: tuple[tuple[str, tuple[str, ...]], ...]
    supports: tuple[tuple[str, int], ...]


class Public(msgspec.Struct, frozen=True):
    """A world and the questions omitted from it."""

    world: World
    questions: MadeQuestions
    unanswerable: int = 0
    bad_supports: int = 0
    long_sentences: int = 0


def read_public(dataset: str, file: Path, limit: int | None = None, seed: int = 0) -> Public:
    """Make a world from an official file, or from a limited number of its questions, sampled by the seed."""
    asked, unanswerable = READERS[dataset](file)
    if limit is not None and limit < len(asked):
        order = sorted(range(len(asked)), key=lambda place: digest(f"{seed}:{asked[place].id}".encode()))
        asked = [asked[place] for place in sorted(order[:limit])]
    if not asked:
        raise BadInput(f"{file} holds no question that can be answered.")
    documents: dict[str, Document] = {}
    rows: list[QuestionRow] = []
    bad = long = 0
    for item in asked:
        ids, cut = _add_paragraphs(item.paragraphs, documents)
        long += cut
        support = dict.fromkeys(ids[place] for place in item.supports if place in ids)
        bad += sum(place not in ids for place in item.supports)
        pages = dict.fromkeys(title for title, _ in item.supports)
        keys = tuple(Key("page", clean(page)) for page in pages if clean(page))
        rows.append(
            QuestionRow(
                item.id, clean(item.text), item.golds, keys, tuple(support), "", "", False, dataset, item.template
            )
        )
    made = make_questions(rows, tuple(documents.values()), seed)
    facts = {"kind": "public", "dataset": dataset, "public_text": True, "seed": seed}
    return Public(World(tuple(documents.values()), made.questions, facts), made, unanswerable, bad, long)


def _add_paragraphs(
    paragraphs: Iterable[tuple[str, tuple[str, ...]]], documents: dict[str, Document]
) -> tuple[dict[tuple[str, int], str], int]:
    """Add every sentence as a document; return the ids by title and number, and the number of truncated sentences."""
    ids: dict[tuple[str, int], str] = {}
    cut = 0
    for title, sentences in paragraphs:
        for number, sentence in enumerate(sentences):
            text = clean(sentence)
            if not text:
                continue
            text = f"{clean(title)}: {text}"
            if len(text) > MOST_TEXT:
                text, cut = text[:MOST_TEXT].rsplit(" ", 1)[0], cut + 1
            slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:24].rstrip("-") or "page"
            id = f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
            documents.setdefault(id, Document(id, text, about=(clean(title),)))
            ids.setdefault((title, number), id)
    return ids, cut


# -- the files --------------------------------------------------------------------------------------------------------


def _read_hotpot(file: Path) -> tuple[list[PublicQuestion], int]:
    asked = []
    for _, entry in _entries(file, _Hotpot):
        if entry.answer is None or entry.supporting_facts is None:
            raise BadInput(
                f"{file}: {entry.id} has no answer or no supporting facts; the test files are not published whole."
            )
        paragraphs = tuple((title, tuple(sentences)) for title, sentences in entry.context)
        supports = tuple(entry.supporting_facts)
        asked.append(
            PublicQuestion(
                entry.id, entry.question, (clean(entry.answer),), entry.type or "question", paragraphs, supports
            )
        )
    return asked, 0


def _read_musique(file: Path) -> tuple[list[PublicQuestion], int]:
    asked, unanswerable = [], 0
    for where, entry in _entries(file, _Musique):
        if not entry.answerable:
            unanswerable += 1
            continue
        if entry.answer is None or any(paragraph.is_supporting is None for paragraph in entry.paragraphs):
            raise BadInput(f"{file}{where}: no answer or no supports; the test files are not published whole.")
        asked.append(_musique(entry))
    return asked, unanswerable


def _musique(entry: _Musique) -> PublicQuestion:
    """Return a question; sentences are numbered through all paragraphs of a page."""
    pages: dict[str, list[str]] = {}
    supports: list[tuple[str, int]] = []
    for paragraph in entry.paragraphs:
        sentences = pages.setdefault(paragraph.title, [])
        text = paragraph.paragraph_text
        found = [text[start:end] for start, end in split(text, spaced=False)]
        if paragraph.is_supporting:
            supports += [(paragraph.title, len(sentences) + place) for place in range(len(found))]
        sentences += found
    golds = tuple(dict.fromkeys(clean(gold) for gold in (entry.answer or "", *entry.answer_aliases) if clean(gold)))
    paragraphs = tuple((title, tuple(sentences)) for title, sentences in pages.items())
    return PublicQuestion(entry.id, entry.question, golds, entry.id.partition("__")[0], paragraphs, tuple(supports))


def _entries(file: Path, type_: type[T]) -> Iterator[tuple[str, T]]:
    """Yield the objects of a file, which is one array or has one object per line."""
    data = _bytes(file)
    if data[:1_000].lstrip().startswith(b"["):
        for number, entry in enumerate(_decode(file, data, list[type_]), 1):  # type: ignore[valid-type]
            yield f", entry {number}", entry
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield f", line {number}", _decode(file, line, type_, f", line {number}")


def _bytes(file: Path) -> bytes:
    try:
        if file.stat().st_size > MOST_FILE:
            raise BadInput(f"{file} is larger than any of these data sets: at most {MOST_FILE:,} bytes are read.")
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}.") from error


def _decode(file: Path, data: bytes, type_: type[T], where: str = "") -> T:
    try:
        return decode(data, type_)
    except msgspec.DecodeError as error:
        raise BadInput(f"{file}{where} is not in the official format: {error}.") from error


READERS: dict[str, Callable[[Path], tuple[list[PublicQuestion], int]]] = {
    "hotpotqa": _read_hotpot,
    "2wiki": _read_hotpot,
    "musique": _read_musique,
}
