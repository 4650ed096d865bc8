"""What a kind of world can say of itself, and which kind a world is: the only place that asks.

A world names its kind in `world.json`. A kind that is registered here may list its questions, tell which documents
belong under a key, name the indexes a perfect curator would build. Every other world (a corpus, a public question set,
a plain folder) is documents and questions: it can do none of that, and says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import Protocol

from kbgym.errors import BadInput
from kbgym.worlds.describing import describe
from kbgym.worlds.truth import Truth
from kbgym.worlds.world import Description, Question, World


class WorldKind(Protocol):
    """`name` is what `world.json` says, `title` what a report calls it.

    `has_pools`: it can list everything a template could ask. `lists_answers`: a gold may be several answers, separated
    by commas.
    """

    name: str
    title: str
    has_pools: bool
    lists_answers: bool

    def pool(self, world: World, template: str) -> Iterator[Question]:
        """Every question a template can ask in this world."""

    def truth(self, world: World) -> Truth | None:
        """Which documents belong under a key; None where nothing is known of keys."""

    def oracle(self, world: World) -> Iterator[tuple[str, str, list[str]]] | None:
        """(kind, text, documents under it) of every index there could be; None where they are not known."""

    def difficulty(self, question: Question) -> int:
        """Questions of one number are drawn for training in proportion to how many there are."""

    def describe(self, world: World) -> Description:
        """What its documents are about, worked out; see `description_of` for what is shown."""


_REAL_TEXT = ("corpus", "public")  # searched by words too; whatever else is there is searched as in the paper


class UnknownKind:
    """Documents and questions of which nothing more is known."""

    has_pools = False
    lists_answers = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.title = name or "your documents"

    def pool(self, world: World, template: str) -> Iterator[Question]:
        raise BadInput("this world cannot list its questions: only generated worlds have instance pools.")

    def truth(self, world: World) -> None:
        return None

    def oracle(self, world: World) -> None:
        return None

    def difficulty(self, question: Question) -> int:
        return 0

    def describe(self, world: World) -> Description:
        return describe(world.documents)


# Where a kind is; it is loaded when something is asked of it, since with it comes all that makes such a world.
_KINDS = {"people": "people.kind:PeopleKind", "phantomwiki": "phantomwiki.kind:WikiKind"}


def kind_of(world: World) -> WorldKind:
    return _kind(_name(world))


@cache
def _kind(name: str) -> WorldKind:
    if name not in _KINDS:
        return UnknownKind(name)
    module, _, attribute = _KINDS[name].partition(":")
    made: WorldKind = getattr(importlib.import_module(f"kbgym.worlds.{module}"), attribute)()
    return made


def _name(world: World) -> str:
    return str(world.facts.get("kind", ""))


def agent_for(world: World) -> str:
    """Who plays on a world unless told otherwise: the reference agents where they know the grammar, else general."""
    return "reference" if _name(world) in _KINDS else "general"


def why_agent(world: World) -> str:
    """Which agents a world gets unless told otherwise, and why, in one line."""
    if agent_for(world) == "reference":
        return f"The reference agents play: they know the grammar of {kind_of(world).title}."
    return "The general agents play: they read any text, and the reference agents do not know this world's grammar."


def search_of(world: World) -> object:
    """What a world is searched by: what its facts say, else what suits its text."""
    return world.facts.get("search") or ("hybrid" if _name(world) in _REAL_TEXT else "vectors")


def observations_of(world: World) -> str:
    """How results read unless told otherwise: on real text they say what has links, elsewhere as in the paper."""
    return "rich" if _name(world) in _REAL_TEXT else "paper"


def budget_of(world: World) -> int | None:
    """How many actions a world asks its readers to answer within; None where it says nothing."""
    said = world.facts.get("forward_budget")
    return said if isinstance(said, int) and said > 0 else None


def description_of(world: World) -> Description:
    """What a world says of itself: its own words where `world.json` has them, the rest as its kind works it out."""
    said, made = world.description, kind_of(world).describe(world) if world.documents else Description()
    return Description(said.about or made.about, said.forms or made.forms, said.keys or made.keys) if said else made


def description_for_prompt(world: World, keys: bool = True) -> str:
    """The same in plain text: a paragraph, the forms of sentences with an example each, the kinds of keys.

    `keys` help who builds or may find indexes, and nobody else.
    """
    said = description_of(world)
    lines = [said.about]
    if said.forms:
        lines += ["", "Forms its sentences have:", *(f"- {one.form} Example: {one.example}" for one in said.forms)]
    if keys and said.keys:
        lines += ["", "Keys that many documents share:", *(f"- {key}" for key in said.keys)]
    return "\n".join(lines)
