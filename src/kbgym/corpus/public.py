"""Worlds from the official files of HotpotQA, 2WikiMultihopQA and MuSiQue.

Every sentence of every paragraph, distractors included, is a document that begins with its page's title; a sentence of
several questions is one document. HotpotQA and 2Wiki name supporting sentences. MuSiQue names supporting paragraphs, so
all their sentences are supports. MuSiQue's unanswerable questions are left out: the paragraphs taken away from them
belong to other questions, so a common store can answer them.

Models were trained on these texts, which `facts` records as `public_text`: a report on such a world also requires a
score without a store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from kbgym.canonical import digest
from kbgym.corpus.questions import MadeQuestions, QuestionRow, json_entries, make_questions
from kbgym.corpus.statements import MOST_TEXT, clean, split
from kbgym.errors import BadInput
from kbgym.worlds.world import Document, Key, World

MOST_FILE = 4 << 30
UNPUBLISHED = "; the test files are not published whole."


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
    """A question of any of the three sets, with its pages as sentences and its supports as positions in them."""

    id: str
    text: str
    golds: tuple[str, ...]
    template: str
    pages: list[tuple[str, list[str]]]
    supports: list[tuple[str, int]]


class Public(msgspec.Struct, frozen=True):
    """A world and the questions omitted from it."""

    world: World
    questions: MadeQuestions
    unanswerable: int = 0
    bad_supports: int = 0
    long_sentences: int = 0


def read_public(dataset: str, file: Path, limit: int | None = None, seed: int = 0) -> Public:
    """Make a world from an official file, or from a limited number of its questions, sampled by the seed."""
    found = list(READERS[dataset](file))
    asked = [one for one in found if one is not None]
    unanswerable = len(found) - len(asked)
    if limit is not None and limit < len(asked):
        order = sorted(range(len(asked)), key=lambda place: digest(f"{seed}:{asked[place].id}".encode()))
        asked = [asked[place] for place in sorted(order[:limit])]
    if not asked:
        raise BadInput(f"{file} holds no question that can be answered.")
    documents: dict[str, Document] = {}
    rows: list[QuestionRow] = []
    bad = long = 0
    for item in asked:
        ids, cut = _add_pages(item.pages, documents)
        long += cut
        support = tuple(dict.fromkeys(ids[place] for place in item.supports if place in ids))
        bad += sum(place not in ids for place in item.supports)
        titles = dict.fromkeys(clean(title) for title, _ in item.supports)
        keys = tuple(Key("page", title) for title in titles if title)
        text = clean(item.text)
        rows.append(QuestionRow(item.id, text, item.golds, keys, support, class_=dataset, template=item.template))
    made = make_questions(rows, tuple(documents.values()), seed)
    facts = {"kind": "public", "dataset": dataset, "public_text": True, "seed": seed}
    return Public(World(tuple(documents.values()), made.questions, facts), made, unanswerable, bad, long)


def _add_pages(
    pages: Iterable[tuple[str, list[str]]], documents: dict[str, Document]
) -> tuple[dict[tuple[str, int], str], int]:
    """Add every sentence as a document; return the ids by title and number, and the number of truncated sentences."""
    ids: dict[tuple[str, int], str] = {}
    cut = 0
    for title, sentences in pages:
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:24].rstrip("-") or "page"
        for number, sentence in enumerate(map(clean, sentences)):
            if not sentence:
                continue
            text = f"{clean(title)}: {sentence}"
            if len(text) > MOST_TEXT:
                text, cut = text[:MOST_TEXT].rsplit(" ", 1)[0], cut + 1
            id = f"{slug}-{digest(text.encode())[:12]}"
            documents.setdefault(id, Document(id, text, about=(clean(title),)))
            ids.setdefault((title, number), id)
    return ids, cut


# -- the files: an entry that cannot be answered is None ---------------------------------------------------------------


def _read_hotpot(file: Path) -> Iterator[PublicQuestion]:
    for where, entry in json_entries(file, _Hotpot, MOST_FILE):
        if entry.answer is None or entry.supporting_facts is None:
            raise BadInput(f"{where}: {entry.id} has no answer or no supporting facts{UNPUBLISHED}")
        golds, template = (clean(entry.answer),), entry.type or "question"
        yield PublicQuestion(entry.id, entry.question, golds, template, entry.context, entry.supporting_facts)


def _read_musique(file: Path) -> Iterator[PublicQuestion | None]:
    for where, entry in json_entries(file, _Musique, MOST_FILE):
        if not entry.answerable:
            yield None
        elif entry.answer is None or any(paragraph.is_supporting is None for paragraph in entry.paragraphs):
            raise BadInput(f"{where}: no answer or no supports{UNPUBLISHED}")
        else:
            yield _musique(entry, entry.answer)


def _musique(entry: _Musique, answer: str) -> PublicQuestion:
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
    golds = tuple(dict.fromkeys(filter(None, map(clean, (answer, *entry.answer_aliases)))))
    return PublicQuestion(entry.id, entry.question, golds, entry.id.partition("__")[0], [*pages.items()], supports)


READERS: dict[str, Callable[[Path], Iterator[PublicQuestion | None]]] = {
    "hotpotqa": _read_hotpot,
    "2wiki": _read_hotpot,
    "musique": _read_musique,
}
