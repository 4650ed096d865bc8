"""Importer of the paper's own universe as a world.

The file is one JSON object with nodes, questions and splits. The import parses its sentences into people, gives its
questions keys and checks its golds against the people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from kbgym.canonical import decode, encode, read_file
from kbgym.errors import BadInput
from kbgym.worlds.people.graph import PeopleGraph
from kbgym.worlds.people.population import Person
from kbgym.worlds.people.sentences import Sentence, parse
from kbgym.worlds.people.templates import TEMPLATES, Template
from kbgym.worlds.world import Document, Key, Question, World

SOURCE = "paper-universe"

PAPER_TEMPLATES = {template.paper: template for template in TEMPLATES.values()}


class PaperNode(msgspec.Struct, frozen=True):
    id: str
    text: str


class PaperQuestion(msgspec.Struct, frozen=True):
    qid: str
    template: str
    text: str
    golds: list[str]
    support: list[str]
    unanswerable: bool


class PaperMeta(msgspec.Struct, frozen=True):
    seed: int | None = None
    n_distractors: Annotated[int, msgspec.Meta(ge=0)] | None = None


class Universe(msgspec.Struct, frozen=True):
    """The fields of the file that are used."""

    nodes: list[PaperNode]
    questions: list[PaperQuestion]
    splits: dict[str, list[str]]
    meta: PaperMeta = PaperMeta()


def read(file: Path) -> World:
    """Read a universe file as a world. Raise BadInput if it is inconsistent."""
    try:
        universe = decode(read_file(file), Universe)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} is not a whole universe file: {error}.") from error
    try:
        return convert(universe)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from error


def convert(universe: Universe) -> World:
    """Convert a parsed universe into a world."""
    told = [_sentence(node) for node in universe.nodes]
    people = _people(told, universe.meta.n_distractors)
    graph = PeopleGraph(people)
    documents = tuple(
        Document(id=node.id, text=node.text, kind=said.kind, about=_about(said, graph.named))
        for node, said in zip(universe.nodes, told, strict=True)
    )
    facts = {"kind": "people", "source": SOURCE, "seed": universe.meta.seed, "people": msgspec.to_builtins(people)}
    return World(documents, _questions(universe, graph), decode(encode(facts)))


def _sentence(node: PaperNode) -> Sentence:
    if (said := parse(node.text)) is None:
        raise BadInput(f"node {node.id} is not a sentence of the universe: {node.text!r}.")
    return said


def _people(told: Sequence[Sentence], distractors: int | None) -> list[Person]:
    """Return every subject of a sentence as a person, in order of appearance."""
    names = list(dict.fromkeys(said.subject for said in told))
    ids = {name: f"p{place:04d}" for place, name in enumerate(names, 1)}
    values: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    gender: dict[str, str] = {}
    for said in told:
        values[said.subject].setdefault(said.kind, []).append(said.value)
        if said.gender or said.subject not in gender:
            gender[said.subject] = said.gender
        if said.kind in _RELATIONS and said.value not in ids:
            raise BadInput(f"a {said.kind} sentence of {said.subject} names {said.value}, who has no sentences.")

    def one(name: str, kind: str) -> str:
        found = values[name].get(kind, [])
        if len(found) != 1:
            raise BadInput(f"{name} has {len(found)} {kind} sentences, not one.")
        return found[0]

    def those(name: str, kind: str) -> tuple[str, ...]:
        return tuple(ids[other] for other in values[name].get(kind, []))

    def person(name: str) -> Person:
        parents = sorted(values[name].get("child-of", []), key=lambda parent: gender[parent] != "female")
        return Person(
            id=ids[name],
            name=name,
            gender=gender[name],
            job=one(name, "job"),
            hobby=one(name, "hobby"),
            city=one(name, "city"),
            born=one(name, "birth"),
            spouse=ids[one(name, "spouse")] if "spouse" in values[name] else None,
            parents=tuple(ids[parent] for parent in parents),
            children=those(name, "parent-of"),
            friends=those(name, "friend"),
            distractor=name in alone,
        )

    # A distractor has only attribute sentences, and distractors are last in the file.
    alone = [name for name in names if not values[name].keys() & {"spouse", "child-of", "parent-of", "friend"}]
    alone = alone if distractors is None else alone[max(0, len(alone) - distractors) :]
    return [person(name) for name in names]


_RELATIONS = ("spouse", "friend", "parent-of", "child-of")


def _about(said: Sentence, named: Mapping[str, str]) -> tuple[str, ...]:
    return (named[said.subject], named[said.value]) if said.kind in _RELATIONS else (named[said.subject],)


def _questions(universe: Universe, graph: PeopleGraph) -> tuple[Question, ...]:
    split_of = {id: split for split, ids in universe.splits.items() for id in ids}
    for item in universe.questions:
        if item.qid not in split_of:
            raise BadInput(f"question {item.qid} is in no split.")
    return tuple(_question(item, split_of[item.qid], graph) for item in universe.questions)


def _question(item: PaperQuestion, split: str, graph: PeopleGraph) -> Question:
    template = PAPER_TEMPLATES.get(item.template)
    keys = template.read(item.text) if template else None
    if template is None or keys is None:
        raise BadInput(f"question {item.qid} is not of the template {item.template!r}: {item.text!r}.")
    slots = [_slot(item, key, graph) for key in keys]
    _check(item, template, slots, graph)
    return Question(
        id=item.qid,
        split=split,
        class_=template.class_,
        template=template.name,
        text=item.text,
        golds=tuple(item.golds),
        keys=keys,
        support=tuple(item.support),
        unanswerable=item.unanswerable,
    )


def _slot(item: PaperQuestion, key: Key, graph: PeopleGraph) -> str:
    if key.kind == "person" and key.value not in graph.named:
        raise BadInput(f"question {item.qid} names {key.value!r}, who is not in the universe.")
    return graph.named[key.value] if key.kind == "person" else key.value


def _check(item: PaperQuestion, template: Template, slots: Sequence[str], graph: PeopleGraph) -> None:
    """Raise BadInput if a question's golds contradict the graph, except for their spelling."""
    solution = template.solve(graph, slots)
    if solution is None:
        raise BadInput(f"question {item.qid} cannot be asked of these people: {item.text!r}.")
    golds, facts = solution
    if item.unanswerable == bool(facts) or not {g.lower() for g in item.golds} & {g.lower() for g in golds}:
        raise BadInput(f"question {item.qid} has the gold {item.golds!r}, but the people say {list(golds)!r}.")
