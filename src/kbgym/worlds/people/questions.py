"""The questions of a people world, drawn from the templates' pools into four splits.

Every split has two easy questions for three hard ones, takes templates in round-robin order and repeats no instance.
Its questions are evenly mixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from random import Random

from kbgym.errors import BadInput
from kbgym.worlds.people.graph import PeopleGraph, Slots
from kbgym.worlds.people.templates import EASY, HARD, TEMPLATES, Template
from kbgym.worlds.splits import Sizes, in_splits
from kbgym.worlds.world import Question

DocumentOf = Mapping[tuple[str, ...], str]


def question(
    graph: PeopleGraph, documents: DocumentOf, template: Template, slots: Slots, id: str, split: str
) -> Question:
    """Return an instance of a template as a question; by default, the id is made from its name and keys."""
    keys = template.keys(graph, slots)
    solution = template.solve(graph, slots)
    if solution is None:
        raise BadInput(f"{template.name} cannot be asked of {' and '.join(key.value for key in keys)}.")
    golds, facts = solution
    return Question(
        id=id or ":".join([template.name, *(key.value for key in keys)]),
        split=split,
        class_=template.class_,
        template=template.name,
        text=template.ask(keys),
        golds=golds,
        keys=keys,
        support=tuple(documents[fact] for fact in facts),
        unanswerable=not facts,
    )


def draw(graph: PeopleGraph, documents: DocumentOf, sizes: Sizes, seed: int) -> tuple[Question, ...]:
    """Draw the questions of all splits. Raise BadInput if a pool is too small."""
    parts = sizes.parts()
    asked = [template for template in TEMPLATES.values() if any(n and r == template.reserved for _, r, n in parts)]
    pools = {template.name: list(template.instances(graph)) for template in asked}
    plan = _plan(parts, {name: len(pool) for name, pool in pools.items()})
    wanted = {name: sum(order.count(name) for order in plan) for name in pools}
    drawn = {name: iter(Random(f"{seed}:questions:{name}").sample(pools[name], wanted[name])) for name in pools}
    groups = [part[0] for part in parts for _ in (EASY, HARD)]
    taken = ([(TEMPLATES[name], next(drawn[name])) for name in order] for order in plan)
    asked_in_order = in_splits(zip(groups, taken, strict=True))
    return tuple(
        question(graph, documents, template, slots, f"q{number:04d}", split)
        for number, (split, (template, slots)) in enumerate(asked_in_order, 1)
    )


def _plan(parts: Sequence[tuple[str, bool, int]], pool: Mapping[str, int]) -> list[list[str]]:
    """Return, for every part, the template names of its easy and then of its hard questions."""
    left = dict(pool)
    plan = []
    for split, reserved, size in parts:
        easy = (4 * size + 5) // 10
        for classes, wanted, word in ((EASY, easy, "easy"), (HARD, size - easy, "hard")):
            names = rotation([t for t in TEMPLATES.values() if t.reserved == reserved and t.class_ in classes])
            for name in names if size else ():
                if not pool[name]:
                    raise BadInput(f"this world has no instance of {name}; use more people or another seed.")
            if wanted and wanted > sum(left[name] for name in names):
                there = sum(left[name] for name in names)
                raise BadInput(f"the split {split} wants {wanted} {word} questions, the pool has only {there} left.")
            order: list[str] = []
            while len(order) < wanted:
                for name in names:
                    if left[name] and len(order) < wanted:
                        left[name] -= 1
                        order.append(name)
            plan.append(order)
    return plan


def rotation(templates: Sequence[Template]) -> list[str]:
    """Return template names in round-robin order: the first template of every class, then the second of each."""
    seen: Counter[str] = Counter()
    ranked = []
    for template in templates:
        seen[template.class_] += 1
        ranked.append((seen[template.class_], template.name))
    return [name for _, name in sorted(ranked, key=itemgetter(0))]
