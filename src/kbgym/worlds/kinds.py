"""World kinds: the interface of capabilities beyond documents and questions.

A world names its kind in `world.json`. A registered kind may list its questions, resolve the documents that belong
under a key, and name the indexes of a perfect curator. Any other world (a corpus, a public question set, a plain
folder) has none of these capabilities. No other module tests the name of a kind.
"""

from __future__ import annotations

import operator
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from kbgym import plugins
from kbgym.errors import BadInput
from kbgym.index_keys import same_key
from kbgym.store.guard import SameIndex
from kbgym.worlds.describe import describe
from kbgym.worlds.truth import Truth
from kbgym.worlds.world import Description, Document, Question, SentenceForm, World

_REAL_TEXT = ("corpus", "public")  # defaults for real text differ from the paper's
_READERS = {"people-v3": "reference-v3"}  # reference agents with a grammar of their own


class WorldKind:
    """A kind; this base class is the kind of a world that has only documents and questions.

    Attributes:
        name: The kind in `world.json`.
        title: The name in reports.
        has_pools: True if `pool` can list every question of a template.
        lists_answers: True if a gold may hold several answers, separated by commas.
    """

    name = ""
    title = "your documents"
    has_pools = False
    lists_answers = False

    def pool(self, world: World, template: str) -> Iterator[Question]:
        """Yield every question a template can ask in this world."""
        raise BadInput("this world cannot list its questions: only generated worlds have instance pools.")

    def truth(self, world: World) -> Truth | None:
        """Return the resolver of documents that belong under a key, or None if the world has no facts about keys."""
        return None

    def oracle(self, world: World) -> Iterator[tuple[str, str, list[str]]] | None:
        """Yield (kind, text, documents under it) of every possible index, or return None if they are not known."""
        return None

    def difficulty(self, question: Question) -> int:
        """Return the stratum of a question; training questions are drawn from strata in proportion to their sizes."""
        return 0

    def describe(self, world: World) -> Description:
        """Describe the documents; `description_of` adds the description in `world.json`."""
        if (said := _descriptions().get(self.name)) is None:
            return describe(world.documents)
        present = set(map(self.form_of, world.documents))
        forms = [SentenceForm(*form) for name, form in said["forms"].items() if name in present]
        return Description(said["about"], tuple(forms), tuple(said["keys"]))

    def form_of(self, document: Document) -> str:
        """Return the name of a document's form in `descriptions.toml`."""
        return document.kind


@cache
def _descriptions() -> dict[str, Any]:
    return tomllib.loads((files("kbgym.worlds") / "descriptions.toml").read_text(encoding="utf-8"))


def kind_of(world: World) -> WorldKind:
    """Return the kind of a world, or a bare `WorldKind` if none is registered under its name."""
    return _kind(_name(world))


@cache
def _kind(name: str) -> WorldKind:
    if plugins.has("kbgym.worlds", name):
        made: WorldKind = plugins.load("kbgym.worlds", name)()
        return made
    unknown = WorldKind()
    unknown.name, unknown.title = name, name or unknown.title
    return unknown


def _name(world: World) -> str:
    return str(world.facts.get("kind", ""))


def agent_for(world: World) -> str:
    """Return the default agents of a world: reference if they know its grammar, else general."""
    if _name(world) in _READERS:
        return _READERS[_name(world)]
    return "reference" if _name(world) in plugins.BUILT_IN["kbgym.worlds"] else "general"


def same_index_of(world: World | None) -> SameIndex:
    """Return the test for two indexes of one key: the grammar's if agents know it, else equality."""
    known = world is not None and agent_for(world) != "general"
    return same_key if known else operator.eq


def why_agent(world: World) -> str:
    """Explain the default agents of a world in one line."""
    if agent_for(world) != "general":
        return f"The reference agents play: they know the grammar of {kind_of(world).title}."
    return "The general agents play: they read any text, and the reference agents do not know this world's grammar."


def search_of(world: World) -> object:
    """Return the search settings in the facts of a world, or the default for its text."""
    return world.facts.get("search") or ("hybrid" if _name(world) in _REAL_TEXT else "vectors")


def ranking_of(world: World) -> str:
    """Return the default ranking of a world: a reserved slot for real text, otherwise as in the paper."""
    return "slot" if _name(world) in _REAL_TEXT else "paper"


def observations_of(world: World) -> str:
    """Return the default rendering of results: marked links for real text, otherwise as in the paper."""
    return "rich" if _name(world) in _REAL_TEXT else "paper"


def budget_of(world: World) -> int | None:
    """Return the action budget that a world sets for readers, or None."""
    said = world.facts.get("forward_budget")
    return said if isinstance(said, int) and said > 0 else None


def description_of(world: World) -> Description:
    """Return the description in `world.json`, completed by the one its kind drafts."""
    said, made = world.description, kind_of(world).describe(world) if world.documents else Description()
    return Description(said.about or made.about, said.forms or made.forms, said.keys or made.keys) if said else made


def description_for_prompt(world: World, keys: bool = True) -> str:
    """Return a description as plain text: a paragraph, the forms of sentences with examples, the kinds of keys.

    Only agents that build or use indexes need `keys`.
    """
    said = description_of(world)
    lines = [said.about]
    if said.forms:
        lines += ["", "Forms its sentences have:", *(f"- {one.form} Example: {one.example}" for one in said.forms)]
    if keys and said.keys:
        lines += ["", "Keys that many documents share:", *(f"- {key}" for key in said.keys)]
    return "\n".join(lines)
