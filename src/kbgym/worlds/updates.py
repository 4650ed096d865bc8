"""Rounds of updates of a world: later documents, and the answers to its questions after each round."""

from __future__ import annotations

import msgspec

from kbgym.errors import BadInput, Damaged
from kbgym.worlds.world import Document, Question, World


class Update(msgspec.Struct, frozen=True):
    """A round of updates: new documents, and the test questions with their answers after the round.

    Attributes:
        superseded: Ids of documents with a report that the round replaces or ends.
    """

    round: int
    documents: tuple[Document, ...]
    superseded: tuple[str, ...]
    questions: tuple[Question, ...]


def updates(world: World) -> tuple[Update, ...]:
    """Return the rounds of updates of a world, empty if it never changes."""
    try:
        return msgspec.convert(world.facts.get("updates", ()), tuple[Update, ...])
    except msgspec.ValidationError as error:
        raise Damaged(f"the updates in world.json are invalid: {error}.") from error


def updated(world: World, rounds: int) -> World:
    """Return a world after some rounds, with their documents and the answers to test questions after them."""
    found = updates(world)
    if not 0 <= rounds <= len(found):
        raise BadInput(f"this world has {len(found)} rounds of updates, not {rounds}.")
    documents = [*world.documents, *(document for one in found[:rounds] for document in one.documents)]
    questions = [one for one in world.questions if one.split == "train" or not rounds]
    questions += found[rounds - 1].questions if rounds else ()
    return msgspec.structs.replace(
        world, documents=tuple(documents), questions=tuple(questions), facts={**world.facts, "round": rounds}
    )
