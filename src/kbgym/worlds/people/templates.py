"""The table of the 26 question templates: name, class, reserved or trained, slots, text, solver, enumerator.

A template's pool is the slots that its enumerator yields; its solver returns the golds and the facts that support them.
Supports contain one end of each relation: a parent's sentence for parent and child, the sentence of the starting person
for spouse and friend.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    reserved: bool
    slots: tuple[str, ...]
    text: str
    solve: Solve
    each: Enumerate | None = None
    symmetric: bool = False  # swapping the two slots does not change the question

    def instances(self, graph: PeopleGraph) -> Iterator[Slots]:
        if self.each is not None:
            return self.each(graph)
        return ((person.id,) for person in graph.asked if self.solve(graph, (person.id,)) is not None)

    def keys(self, graph: PeopleGraph, slots: Sequence[str]) -> tuple[Key, ...]:
        """Return the slots as keys, people by name."""
        pairs = zip(self.slots, slots, strict=True)
        return tuple(Key(kind, graph.person[slot].name if kind == "person" else slot) for kind, slot in pairs)

    def instance(self, keys: Sequence[Key]) -> tuple[Key, ...]:
        """Return the keys in an order that is the same for "older, P or Q" and "older, Q or P"."""
        return tuple(sorted(keys)) if self.symmetric else tuple(keys)

    def ask(self, keys: Sequence[Key]) -> str:
        return self.text.format(*(key.value for key in keys))

    def read(self, text: str) -> tuple[Key, ...] | None:
        """Return the keys of a question text, or None if it is not of this template."""
        pattern = re.sub(r"\\\{\d\\\}", "(.+)", re.escape(self.text))
        found = re.fullmatch(pattern, text)
        return found and tuple(Key(kind, value) for kind, value in zip(self.slots, found.groups(), strict=True))


P, J, C, H = "person", "job", "city", "hobby"
R, T = True, False  # reserved for test_out, or trained
_walk = solve.attribute

_TABLE = (
    Template("job-of", "QC1", T, (P,), "What is the job of {0}?", _walk("job")),
    Template("hobby-of", "QC1", T, (P,), "What is the hobby of {0}?", _walk("hobby")),
    Template("city-of", "QC1", R, (P,), "In which city does {0} live?", _walk("city")),
    Template("spouse-job", "QC2", T, (P,), "What is the job of the spouse of {0}?", _walk("job", "spouse")),
    Template("father-hobby", "QC2", T, (P,), "What is the hobby of the father of {0}?", _walk("hobby", "father")),
    Template("mother-city", "QC2", R, (P,), "In which city does the mother of {0} live?", _walk("city", "mother")),
    Template(
        "spouse-father-hobby", "QC3", T, (P,),
        "What is the hobby of the father of the spouse of {0}?", _walk("hobby", "spouse", "father"),
    ),
    Template(
        "father-spouse-job", "QC3", T, (P,),
        "What is the job of the spouse of the father of {0}?", _walk("job", "father", "spouse"),
    ),
    Template(
        "spouse-mother-city", "QC3", R, (P,),
        "In which city does the mother of the spouse of {0} live?", _walk("city", "spouse", "mother"),
    ),
    Template("count-children", "QC4", T, (P,), "How many children does {0} have?", solve.count_children),
    Template("count-friends", "QC4", R, (P,), "How many friends does {0} have?", solve.count_friends),
    Template(
        "brother-job", "QC5", T, (P,),
        "What is the job of the brother of {0}?", solve.no_sibling("male"), solve.each_without_sibling("male"),
    ),
    Template(
        "sister-hobby", "QC5", T, (P,),
        "What is the hobby of the sister of {0}?", solve.no_sibling("female"), solve.each_without_sibling("female"),
    ),
    Template("spouse-city", "QC5", R, (P,), "In which city does the spouse of {0} live?", solve.no_spouse),
    Template(
        "job-and-city", "QC6", T, (J, C),
        "Who is the {0} who lives in the city of {1}?", solve.match(J, C), solve.each_match(J, C),
    ),
    Template(
        "job-and-hobby", "QC6", T, (J, H),
        "Who is the {0} whose hobby is {1}?", solve.match(J, H), solve.each_match(J, H),
    ),
    Template(
        "job-city-hobby", "QC6", R, (J, C, H),
        "Who is the {0} in the city of {1} whose hobby is {2}?", solve.match(J, C, H), solve.each_match(J, C, H),
    ),
    Template(
        "common-friend", "QC7", T, (P, P),
        "Which friend of {0} is also a friend of {1}?", solve.common_friend, solve.each_common_friend, symmetric=True,
    ),
    Template(
        "child-and-friend", "QC7", R, (P, P),
        "Which child of {0} is a friend of {1}?", solve.child_and_friend, solve.each_child_and_friend,
    ),
    Template("count-grandchildren", "QC8", T, (P,), "How many grandchildren does {0} have?", solve.count_grandchildren),
    Template(
        "friends-with-job", "QC8", T, (P, J),
        "How many friends of {0} have the job of {1}?", solve.friends_with_job, solve.each_friends_job,
    ),
    Template("spouse-friends", "QC8", R, (P,), "How many friends does the spouse of {0} have?", solve.spouse_friends),
    Template(
        "older-of-two", "QC9", T, (P, P),
        "Who is older, {0} or {1}?", solve.older_of_two, solve.each_pair_of_friends, symmetric=True,
    ),
    Template("oldest-child", "QC9", R, (P,), "Who is the oldest child of {0}?", solve.oldest_child),
    Template(
        "spouse-of-job-city", "QC10", T, (J, C),
        "Whose spouse is the {0} who lives in the city of {1}?",
        solve.match(J, C, spouse=True), solve.each_match(J, C, married=True),
    ),
    Template(
        "spouse-of-job", "QC10", R, (J,),
        "Whose spouse has the job of {0}?", solve.spouse_of_job, solve.each_rare_job,
    ),
)  # fmt: skip

TEMPLATES: dict[str, Template] = {template.name: template for template in _TABLE}


def template_named(name: str) -> Template:
    if name not in TEMPLATES:
        raise BadInput(f"there is no template {name!r}; the templates are {', '.join(TEMPLATES)}.")
    return TEMPLATES[name]
