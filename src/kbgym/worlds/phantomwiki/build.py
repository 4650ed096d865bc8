"""Worlds from the output of `pw-generate`: documents, facts, and four splits with a count of shared keys.

Two templates are reserved: those that follow a relation of a named person. They test a new composition of trained parts
and, of all pairs, share the fewest keys with the others. Tautologies ("What is the hobby of the person whose hobby is
chess?") need no store and are excluded from every split; duplicate questions are asked once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from kbgym.codes import code
from kbgym.errors import BadInput, Damaged
from kbgym.worlds.phantomwiki.files import Article, Generated, read_articles, read_questions
from kbgym.worlds.phantomwiki.wiki import CLASSES, PREDICATES, STATED, TEMPLATES, Instance, Stated, Wiki
from kbgym.worlds.splits import Sizes, in_splits
from kbgym.worlds.world import Document, Question, World

RESERVED = ("attribute-of-relation", "count-of-relation")


class Shipped(msgspec.Struct, frozen=True):
    """The content of an output folder, and its questions that are eligible for splits."""

    articles: int
    sentences: int
    questions: int
    distinct: int
    tautologies: int


class Leakage(msgspec.Struct, frozen=True):
    """The questions of a split, and those that share a key with a training question."""

    questions: int
    shared: int

    @property
    def share(self) -> float:
        return self.shared / self.questions if self.questions else 0.0


def build(folder: Path, sizes: Sizes | None = None, seed: int = 1) -> tuple[World, Shipped]:
    """Return the world in an output folder. Raise Damaged if a shipped question or answer is not in our pools.

    Documents are shuffled by the seed, and their ids are opaque codes.
    """
    articles = read_articles(folder)
    documents, people = _documents(articles, seed)
    facts: dict[str, Any] = {"kind": "phantomwiki", "people": people, "reserved": list(RESERVED), "version": 2}
    wiki = wiki_of(World(documents, (), facts))
    generated = read_questions(folder)
    found = _match(wiki, generated)
    drawn = enumerate(_from_shipped(found, sizes or Sizes()), 1)
    questions = tuple(question_of(instance, f"q{number:04d}", split) for number, (split, instance) in drawn)
    shipped = Shipped(
        articles=len(articles),
        sentences=len(documents),
        questions=len(generated),
        distinct=len(found),
        tautologies=sum(instance.tautology for instance in found),
    )
    return World(documents, questions, facts), shipped


def _documents(articles: Sequence[Article], seed: int) -> tuple[tuple[Document, ...], list[dict[str, Any]]]:
    """Return the sentences as documents, and the people as plain facts."""
    ids = {article.title: f"p{place:04d}" for place, article in enumerate(articles, 1)}
    told: list[tuple[str, str, tuple[str, ...]]] = []
    people: list[dict[str, Any]] = []
    for article in articles:
        person: dict[str, Any] = {"id": ids[article.title], "name": article.title}
        for kind, subject, values, text in map(msgspec.structs.astuple, article.sentences()):
            others = [ids[name] for name in values] if kind in STATED else []
            told.append((text, kind, (ids[subject], *others)))
            person[kind] = others or values[0]
        people.append(person)
    Random(f"{seed}:documents").shuffle(told)
    return tuple(Document(code(number), *one) for number, one in enumerate(told, 1)), people


def wiki_of(world: World) -> Wiki:
    """Return the wiki of a world."""
    people = world.facts.get("people", ())
    try:
        names = {person["id"]: person["name"] for person in people}
        values = {
            (person["id"], kind): tuple(names[id] for id in value) if kind in STATED else (value,)
            for person in people
            for kind, value in person.items()
            if kind in STATED or kind in PREDICATES.values()
        }
        stated = [
            Stated(document.id, document.kind, names[document.about[0]], values[document.about[0], document.kind])
            for document in world.documents
        ]
    except (KeyError, TypeError, IndexError) as error:
        raise Damaged(f"the facts of this world do not go with its documents: {error!r}.") from error
    return Wiki(names.values(), stated)


def question_of(instance: Instance, id: str, split: str) -> Question:
    """Return an instance as a question; several answers are one gold, separated by commas as in the package."""
    return Question(
        id=id or ":".join([instance.template, *instance.slots, instance.key.kind, instance.key.value]),
        split=split,
        class_=CLASSES[instance.type],
        template=instance.template,
        text=instance.text,
        golds=(", ".join(instance.answers),),
        keys=(instance.key,),
        support=tuple(sorted(instance.support)),
    )


def pool(world: World, template: str) -> Iterator[Question]:
    """Yield every instance of a template as a question of the split "pool"."""
    if template not in TEMPLATES:
        raise BadInput(f"there is no template {template!r}; PhantomWiki has {', '.join(TEMPLATES)}.")
    instances = wiki_of(world).pool(TEMPLATES.index(template))
    return (question_of(one, "", "pool") for one in instances if not one.tautology)


def leakage(world: World) -> dict[str, Leakage]:
    """Return the leakage of every split but training."""
    trained = {key for question in world.split("train") for key in question.keys}
    return {
        name: Leakage(count, sum(any(key in trained for key in question.keys) for question in world.split(name)))
        for name, count in world.splits.items()
        if name != "train"
    }


def _match(wiki: Wiki, generated: Sequence[Generated]) -> list[Instance]:
    """Return the shipped questions as instances of our pools, in order without duplicates."""
    wanted: dict[str, Generated] = {one.question: one for one in generated}
    found: dict[str, Instance] = {}
    for type in sorted({one.type for one in generated}):
        for instance in wiki.pool(type):
            if instance.text in wanted:
                found[instance.text] = instance
    for one in generated:
        if one.question not in found:
            raise Damaged(f"the shipped question {one.question!r} cannot be asked of these people.")
        instance = found[one.question]
        if instance.type != one.type or instance.answers != one.answer:
            raise Damaged(
                f"the shipped question {one.question!r} has the answer {', '.join(one.answer)!r}, but the articles "
                f"say {', '.join(instance.answers)!r}."
            )
    return [found[text] for text in wanted]


def _from_shipped(found: Iterable[Instance], sizes: Sizes) -> list[tuple[str, Instance]]:
    stock: dict[str, list[Instance]] = {name: [] for name in TEMPLATES}
    for instance in found:
        if not instance.tautology:
            stock[instance.template].append(instance)
    for name, instances in stock.items():
        Random(f"phantomwiki:shipped:{name}").shuffle(instances)
    return in_splits((split, _take(stock, reserved, n, split)) for split, reserved, n in sizes.parts())


def _take(stock: Mapping[str, list[Instance]], reserved: bool, n: int, split: str) -> list[Instance]:
    """Take `n` instances from the ends of the lists, in round-robin order of the templates."""
    names = [name for name in TEMPLATES if (name in RESERVED) == reserved]
    there = sum(len(stock[name]) for name in names)
    if n > there:
        raise BadInput(f"the split {split} wants {n} questions, only {there} are left; generate more per type.")
    taken: list[Instance] = []
    while len(taken) < n:
        for name in names:
            if stock[name] and len(taken) < n:
                taken.append(stock[name].pop())
    return taken
