"""The 26 question templates of `templates.toml`, each with its solver and its enumerator.

A template's pool is the slots that its enumerator yields; its solver returns the golds and the facts that support them.
Supports contain one end of each relation: a parent's sentence for parent and child, the sentence of the starting person
for spouse and friend.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from kbgym.chronicle.questions import UNKNOWN
from kbgym.errors import BadInput
from kbgym.worlds.people import graph as solve
from kbgym.worlds.people.graph import Enumerate, PeopleGraph, Slots, Solve
from kbgym.worlds.world import Key

EASY = ("QC1", "QC2", "QC3", "QC4", "QC5")
HARD = ("QC6", "QC7", "QC8", "QC9", "QC10")


@dataclass(frozen=True)
class Template:
    """A form of question. Without `each`, the pool is all people that the solver accepts."""

    name: str
    class_: str
    slots: tuple[str, ...]
    solve: Solve
    each: Enumerate | None
    text: str
    paper: str  # its name in the paper's own universe
    reserved: bool = False

    def instances(self, graph: PeopleGraph) -> Iterator[Slots]:
        if self.each is not None:
            return self.each(graph)
        return ((person.id,) for person in graph.asked if self.solve(graph, (person.id,)) is not None)

    def keys(self, graph: PeopleGraph, slots: Sequence[str]) -> tuple[Key, ...]:
        """Return the slots as keys, people by name."""
        pairs = zip(self.slots, slots, strict=True)
        return tuple(Key(kind, graph.person[slot].name if kind == "person" else slot) for kind, slot in pairs)

    def ask(self, keys: Sequence[Key]) -> str:
        return self.text.format(*(key.value for key in keys))

    def read(self, text: str) -> tuple[Key, ...] | None:
        """Return the keys of a question text, or None if it is not of this template."""
        pattern = re.sub(r"\\\{\d\\\}", "(.+)", re.escape(self.text))
        found = re.fullmatch(pattern, text)
        return found and tuple(Key(kind, value) for kind, value in zip(self.slots, found.groups(), strict=True))


# Solvers of the templates that follow no path and match no values; without an enumerator, all people are tried.
_SOLVERS: dict[str, tuple[Solve, Enumerate | None]] = {
    "count-children": (lambda graph, slots: solve.count(graph.childhood(slots[0])), None),
    "count-friends": (lambda graph, slots: solve.count(graph.friendships(slots[0])), None),
    "brother-job": (solve.no_sibling("male"), solve.each_without_sibling("male")),
    "sister-hobby": (solve.no_sibling("female"), solve.each_without_sibling("female")),
    "spouse-city": (lambda graph, slots: None if graph.person[slots[0]].spouse else (UNKNOWN, []), None),
    "common-friend": (solve.common_friend, solve.each_common_friend),
    "child-and-friend": (solve.child_and_friend, solve.each_child_and_friend),
    "count-grandchildren": (solve.count_grandchildren, None),
    "friends-with-job": (solve.friends_with_job, solve.each_friends_job),
    "spouse-friends": (solve.spouse_friends, None),
    "older-of-two": (solve.older_of_two, solve.each_pair_of_friends),
    "oldest-child": (solve.oldest_child, None),
    "spouse-of-job": (solve.spouse_of_job, solve.each_rare_job),
}


def _template(name: str, row: dict[str, Any]) -> Template:
    each: Enumerate | None = None
    if path := row.pop("path", None):
        solver = solve.attribute(path[-1], *path[:-1])
    elif fields := row.pop("match", None):
        spouse = row.pop("spouse", False)
        solver, each = solve.match(*fields, spouse=spouse), solve.each_match(*fields, married=spouse)
    else:
        solver, each = _SOLVERS[name]
    return Template(name, row.pop("class"), tuple(row.pop("slots")), solver, each, **row)


_ROWS = tomllib.loads((files("kbgym.worlds.people") / "templates.toml").read_text(encoding="utf-8"))
TEMPLATES: dict[str, Template] = {name: _template(name, row) for name, row in _ROWS.items()}


def template_named(name: str) -> Template:
    if name not in TEMPLATES:
        raise BadInput(f"there is no template {name!r}; the templates are {', '.join(TEMPLATES)}.")
    return TEMPLATES[name]
