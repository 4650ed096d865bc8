"""Readers of the output of `pw-generate`: articles.json and questions.json.

Question ids change in every run. Articles are sorted by title and questions by type and text, so that two runs with one
seed give equal values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kbgym.canonical import read_value
from kbgym.errors import Damaged
from kbgym.worlds.phantomwiki.wiki import PREDICATES, STATED

_FACT = re.compile(r'(\w+)\("([^"]*)", "([^"]*)"\)\.')
_SENTENCE = re.compile(r"^(?!#)\S.*$", re.MULTILINE)


class ArticleSentence(msgspec.Struct, frozen=True):
    """A sentence of an article: its kind of fact, its subject, and the people or the value that it names."""

    kind: str
    subject: str
    values: tuple[str, ...]
    text: str


class Article(msgspec.Struct, frozen=True):
    """An entry of articles.json: the page of a person, as text and as facts."""

    title: str
    article: str
    facts: tuple[str, ...]

    def sentences(self) -> Iterator[ArticleSentence]:
        """Yield the sentences, matched with the facts by order."""
        told: dict[str, list[str]] = {}
        for fact in self.facts:
            match = _FACT.fullmatch(fact)
            if match is None or (match[1] not in STATED and match[1] not in PREDICATES):
                raise Damaged(f"the article of {self.title} has a fact that cannot be read: {fact}")
            told.setdefault(PREDICATES.get(match[1], match[1]), []).append(match[3])
        lines = _SENTENCE.findall(self.article)
        if len(told) != len(lines):
            raise Damaged(f"the article of {self.title} has {len(lines)} sentences for {len(told)} kinds of fact.")
        for (kind, values), text in zip(told.items(), lines, strict=True):
            if any(name not in text for name in (self.title, *values)):
                raise Damaged(f"the sentence {text!r} does not say what the facts of {self.title} say of {kind}.")
            yield ArticleSentence(kind, self.title, tuple(values), text)


class Generated(msgspec.Struct, frozen=True):
    """An entry of questions.json; other fields are ignored."""

    question: str
    answer: tuple[str, ...]
    type: int


def read_articles(folder: Path) -> tuple[Article, ...]:
    """Return the articles sorted by title. Raise Damaged if a named person has no article."""
    articles: list[Article] = sorted(read_value(folder / "articles.json", list[Article]), key=lambda one: one.title)
    if not articles:
        raise Damaged(f"{folder / 'articles.json'} has no article.")
    known = {article.title for article in articles}
    for article in articles:
        for sentence in article.sentences():
            strangers = [name for name in sentence.values if sentence.kind in STATED and name not in known]
            if strangers:
                raise Damaged(f"the article of {article.title} names {strangers[0]}, who has no article.")
    return tuple(articles)


def read_questions(folder: Path) -> tuple[Generated, ...]:
    """Return the questions sorted by type and text, with sorted answers."""
    questions: Sequence[Generated] = read_value(folder / "questions.json", list[Generated])
    tidy = [msgspec.structs.replace(one, answer=tuple(sorted(set(one.answer)))) for one in questions]
    return tuple(sorted(tidy, key=lambda one: (one.type, one.question, one.answer)))
