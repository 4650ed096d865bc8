"""Import of the paper's own universe as a world.

The file is one JSON object with nodes, questions, splits and a vocabulary. The import parses its sentences back into
people, gives its questions keys and checks its golds. It refuses duplicate ids, sentences of no known form, relations
stated from one end only, and golds that contradict the people.
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

# The file's template names, in the order of TEMPLATES.
_NAMES = """
    qc1_job qc1_hobby qc1_city qc2_spouse_job qc2_father_hobby qc2_mother_city qc3_spouse_father_hobby
    qc3_father_spouse_job qc3_spouse_mother_city qc4_children qc4_friends qc5_brother_job qc5_sister_hobby
    qc5_spouse_city qc6_job_city qc6_job_hobby qc6_job_city_hobby qc7_common_friend qc7_child_friend qc8_grandchildren
    qc8_friend_job qc8_spouse_friends qc9_older_pair qc9_oldest_child qc10_spouse_job_city qc10_spouse_job
""".split()
PAPER_TEMPLATES = dict(zip(_NAMES, TEMPLATES.values(), strict=True))


class PaperNode(msgspec.Struct, frozen=True):
    id: str
    text: str


class PaperQuestion(msgspec.Struct, frozen=True):
    qid: str
    template: str
    category: str
    text: str
    golds: list[str]
    support: list[str]
    unanswerable: bool


class Vocabulary(msgspec.Struct, frozen=True):
    jobs: list[str]
    hobbies: list[str]
    cities: list[str]


class PaperMeta(msgspec.Struct, frozen=True):
    seed: int | None = None
    n_distractors: Annotated[int, msgspec.Meta(ge=0)] | None = None


class Universe(msgspec.Struct, frozen=True):
    """The fields of the file that are used."""

    nodes: list[PaperNode]
    questions: list[PaperQuestion]
    splits: dict[str, list[str]]
    vocab: Vocabulary
    meta: PaperMeta = PaperMeta()


def read(file: Path) -> World:
    """Read a universe file as a world; raise BadInput if anything in it is inconsistent."""
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
    told = _sentences(universe.nodes)
    people = _people(list(told.values()), universe.meta.n_distractors)
    graph = PeopleGraph(people)
    documents = tuple(
        Document(id=node.id, text=node.text, kind=said.kind, about=_about(said, graph.named))
        for node in universe.nodes
        for said in [told[node.id]]
    )
    facts = {
        "kind": "people",
        "source": SOURCE,
        "seed": universe.meta.seed,
        "people": msgspec.to_builtins(people),
    }
    return World(documents, _questions(universe, graph), decode(encode(facts)))


def _sentences(nodes: Sequence[PaperNode]) -> dict[str, Sentence]:
    told: dict[str, Sentence] = {}
    for node in nodes:
        if node.id in told:
            raise BadInput(f"node id {node.id!r} stands twice.")
        said = parse(node.text)
        if said is None:
            raise BadInput(f"node {node.id} is no sentence of the universe: {node.text!r}.")
        told[node.id] = said
    return told


def _people(told: Sequence[Sentence], distractors: int | None) -> list[Person]:
    """Return every subject of a sentence as a person, in order of appearance."""
    names = list(dict.fromkeys(said.subject for said in told))
    ids = {name: f"p{place:04d}" for place, name in enumerate(names, 1)}
    values: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    gender: dict[str, str] = {}
    for said in told:
        values[said.subject].setdefault(said.kind, []).append(said.value)
        if gender.setdefault(said.subject, said.gender) != said.gender and said.gender:
            if gender[said.subject]:
                raise BadInput(f"{said.subject} is called both a mother and a father.")
            gender[said.subject] = said.gender
    _both_ends(told, ids)

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

    # A distractor has attribute sentences only, and distractors stand last in the file.
    alone = [name for name in names if not values[name].keys() & {"spouse", "child-of", "parent-of", "friend"}]
    alone = alone if distractors is None else alone[max(0, len(alone) - distractors) :]
    return [person(name) for name in names]


_REVERSE = {"spouse": "spouse", "friend": "friend", "child-of": "parent-of", "parent-of": "child-of"}


def _both_ends(told: Sequence[Sentence], ids: Mapping[str, str]) -> None:
    relations: set[tuple[str, str, str]] = set()
    for kind, subject, other, _ in (said for said in told if said.kind in _REVERSE):
        if (kind, subject, other) in relations:
            raise BadInput(f"the {kind} relation of {subject} and {other} is told twice from the same end.")
        relations.add((kind, subject, other))
        if other not in ids:
            raise BadInput(f"a {kind} sentence of {subject} names {other}, about whom nothing else is said.")
    for kind, subject, other in sorted(relations):
        if (_REVERSE[kind], other, subject) not in relations:
            raise BadInput(f"the {kind} relation of {subject} and {other} is told from one end only.")


def _about(said: Sentence, named: Mapping[str, str]) -> tuple[str, ...]:
    return (named[said.subject], named[said.value]) if said.kind in _REVERSE else (named[said.subject],)


def _questions(universe: Universe, graph: PeopleGraph) -> tuple[Question, ...]:
    asked: dict[str, PaperQuestion] = {}
    for item in universe.questions:
        if item.qid in asked:
            raise BadInput(f"question id {item.qid!r} stands twice.")
        asked[item.qid] = item
    split_of: dict[str, str] = {}
    for split, ids in universe.splits.items():
        for id in ids:
            if id not in asked:
                raise BadInput(f"the split {split} names {id!r}, which is no question.")
            if id in split_of:
                raise BadInput(f"question {id} is in two splits, or twice in one.")
            split_of[id] = split
    for id in asked:
        if id not in split_of:
            raise BadInput(f"question {id} is in no split.")
    return tuple(_question(item, split_of[item.qid], universe.vocab, graph) for item in universe.questions)


def _question(item: PaperQuestion, split: str, vocab: Vocabulary, graph: PeopleGraph) -> Question:
    template = PAPER_TEMPLATES.get(item.template)
    if template is None:
        raise BadInput(f"question {item.qid} has the unknown template {item.template!r}.")
    if item.category != template.class_:
        raise BadInput(f"question {item.qid} is of class {item.category!r}, its template of {template.class_}.")
    keys = template.read(item.text)
    if keys is None:
        raise BadInput(f"question {item.qid} does not read like {item.template}: {item.text!r}.")
    slots = [_slot(item, key, vocab, graph) for key in keys]
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


def _slot(item: PaperQuestion, key: Key, vocab: Vocabulary, graph: PeopleGraph) -> str:
    known = {"job": vocab.jobs, "hobby": vocab.hobbies, "city": vocab.cities, "person": graph.named}[key.kind]
    if key.value not in known:
        raise BadInput(f"question {item.qid} speaks of the {key.kind} {key.value!r}, which the universe does not have.")
    return graph.named[key.value] if key.kind == "person" else key.value


def _check(item: PaperQuestion, template: Template, slots: Sequence[str], graph: PeopleGraph) -> None:
    """Raise BadInput if a question's golds contradict the graph; the spelling of golds may differ."""
    solution = template.solve(graph, slots)
    if solution is None:
        raise BadInput(f"question {item.qid} cannot be asked of these people: {item.text!r}.")
    golds, facts = solution
    if item.unanswerable == bool(facts) or not {g.lower() for g in item.golds} & {g.lower() for g in golds}:
        raise BadInput(f"question {item.qid} has the gold {item.golds!r}, but the people say {list(golds)!r}.")
