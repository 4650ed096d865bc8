"""A family of ten and a namesake, small enough to know by heart, for tests of what belongs under a key.

Ada + Bo                          Ada's friends: Ian, Kim          Lund: Ada, Bo, Kim, and the namesake Ada Bok
 ├── Cy + Eve ── Fay, Gus         Fay's friends: Kim               bakers: Ada, Cy
 └── Dot + Ian ── Hal
"""

from __future__ import annotations

import msgspec

from kbgym.store import Record, Store, source
from kbgym.worlds.people.population import Person
from kbgym.worlds.people.sentences import statements
from kbgym.worlds.world import Document, Question, World

_ROWS = """
    Ada Alm, female, baker, darts, Lund, 1930-01-01, Bo Alm, , Cy Alm + Dot Alm, Ian Ost + Kim Fox
    Bo Alm, male, miller, poetry, Lund, 1930-01-02, Ada Alm, , Cy Alm + Dot Alm,
    Cy Alm, male, baker, poetry, Oslo, 1955-01-03, Eve Ek, Ada Alm + Bo Alm, Fay Alm + Gus Alm,
    Dot Alm, female, judge, bowls, Oslo, 1956-01-04, Ian Ost, Ada Alm + Bo Alm, Hal Ost,
    Eve Ek, female, miller, curling, Oslo, 1955-01-05, Cy Alm, , Fay Alm + Gus Alm,
    Fay Alm, female, judge, darts, Ystad, 1980-01-06, , Eve Ek + Cy Alm, , Kim Fox
    Gus Alm, male, hatter, falconry, Ystad, 1981-01-07, , Eve Ek + Cy Alm, ,
    Hal Ost, male, hatter, falconry, Oslo, 1982-01-08, , Dot Alm + Ian Ost, ,
    Ian Ost, male, ferryman, bowls, Oslo, 1954-01-09, Dot Alm, , Hal Ost, Ada Alm
    Kim Fox, female, florist, ice hockey, Lund, 1960-01-10, , , , Ada Alm + Fay Alm
    Ada Bok, female, florist, darts, Lund, 1961-01-11, , , ,
"""


def _people() -> tuple[Person, ...]:
    rows = [[cell.strip() for cell in row.split(",")] for row in _ROWS.strip().splitlines()]
    ids = {row[0]: f"p{number}" for number, row in enumerate(rows)}

    def these(cell: str) -> tuple[str, ...]:
        return tuple(ids[name] for name in cell.split(" + ") if name)

    return tuple(
        Person(
            id=ids[name],
            name=name,
            gender=gender,
            job=job,
            hobby=hobby,
            city=city,
            born=born,
            spouse=ids.get(spouse),
            parents=these(parents),
            children=these(children),
            friends=these(friends),
            distractor=name == "Ada Bok",
        )
        for name, gender, job, hobby, city, born, spouse, parents, children, friends in rows
    )


def family(questions: tuple[Question, ...] = ()) -> World:
    people = _people()
    documents = tuple(Document(f"d{number:05d}", *one) for number, one in enumerate(statements(people), 1))
    return World(documents, questions, {"kind": "people", "seed": 0, "people": msgspec.to_builtins(people)})


def documents(world: World) -> dict[str, str]:
    """Ids by text, without the full stop."""
    return {document.text.removesuffix("."): document.id for document in world.documents}


def store_with(world: World, **indexes: tuple[str, list[str]]) -> Store:
    """A store of the world's documents and indexes by id: their text, and what they link to, by text or id."""
    ids = documents(world)
    sources: list[Document] = list(world.documents)
    return Store(
        [
            *(source(document.id, document.text) for document in sources),
            *(
                Record(id, text, tuple(ids.get(target, target) for target in targets), flag="authored")
                for id, (text, targets) in indexes.items()
            ),
        ]
    )


def numbered(world: World) -> World:
    """The world with ids that may be named unseen."""
    ids = {document.id: f"d{number:05d}" for number, document in enumerate(world.documents, 1)}
    documents = (msgspec.structs.replace(document, id=ids[document.id]) for document in world.documents)
    questions = (msgspec.structs.replace(one, support=tuple(ids[id] for id in one.support)) for one in world.questions)
    return World(tuple(documents), tuple(questions), world.facts)
