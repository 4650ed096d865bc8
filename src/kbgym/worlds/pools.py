"""Whole instance pools, for worlds that can list them: what the gradient draws its unseen questions from."""

from __future__ import annotations

from collections.abc import Iterator

from kbgym.errors import BadInput
from kbgym.worlds import people, phantomwiki
from kbgym.worlds.world import Question, World


def has_pools(world: World) -> bool:
    return world.facts.get("kind") in ("people", "phantomwiki")


def pool(world: World, template: str) -> Iterator[Question]:
    """Every question a template can ask in this world; of PhantomWiki's, all that are no tautologies."""
    if world.facts.get("kind") == "people":
        return people.pool(world, template)
    if world.facts.get("kind") == "phantomwiki":
        return phantomwiki.pool(world, template)
    raise BadInput("this world cannot list its questions: only generated worlds have instance pools.")


def gradient_templates(world: World) -> tuple[str, ...]:
    """The trained templates with the most slots: two in the people universe, one in PhantomWiki."""
    trained: dict[str, int] = {}
    for question in world.split("train"):
        trained[question.template] = max(trained.get(question.template, 0), len(question.keys))
    most = max(trained.values(), default=0)
    return tuple(sorted(name for name, slots in trained.items() if slots == most and most > 0))
