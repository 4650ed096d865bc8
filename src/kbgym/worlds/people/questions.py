"""Questions from pools: whole pools, the four splits drawn from them, and fair subsets of a training split.

Two parts easy to three parts hard, round robin over the templates, no instance twice. A split is ordered so that every
stretch of it has about the same mix. It knows how to ask but not how a template is solved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from random import Random
from typing import TypeVar

import msgspec

from kbgym.errors import BadInput
from kbgym.worlds.people.graph import Graph
from kbgym.worlds.people.joins import Slots
from kbgym.worlds.people.templates import EASY, HARD, TEMPLATES, Template
from kbgym.worlds.world import Question

T = TypeVar("T")
DocumentOf = Mapping[tuple[str, ...], str]


class Sizes(msgspec.Struct, frozen=True):
    """How many questions each split has; eval has a part of trained and a part of reserved templates."""

    train: int = 150
    test_in: int = 100
    test_out: int = 50
    eval_in: int = 20
    eval_out: int = 10

    def parts(self) -> list[tuple[str, bool, int]]:
        """(split, reserved templates?, questions)."""
        return [
            ("train", False, self.train),
            ("test_in", False, self.test_in),
            ("test_out", True, self.test_out),
            ("eval", False, self.eval_in),
            ("eval", True, self.eval_out),
        ]


def question(graph: Graph, documents: DocumentOf, template: Template, slots: Slots, id: str, split: str) -> Question:
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


def draw(graph: Graph, documents: DocumentOf, sizes: Sizes, seed: int) -> tuple[Question, ...]:
    """The splits' questions, in the order of the splits."""
    for name, size in msgspec.structs.asdict(sizes).items():
        if size < 0:
            raise BadInput(f"the split {name} cannot have {size} questions.")
    parts = sizes.parts()
    asked = [template for template in TEMPLATES.values() if any(n and r == template.reserved for _, r, n in parts)]
    pools = {template.name: list(template.instances(graph)) for template in asked}
    plan = _plan(parts, {name: len(pool) for name, pool in pools.items()})
    wanted = {name: sum(order.count(name) for order in plan) for name in pools}
    drawn = {name: iter(Random(f"{seed}:questions:{name}").sample(pools[name], wanted[name])) for name in pools}
    taken: dict[str, list[list[tuple[Template, Slots]]]] = {}
    groups = [part[0] for part in parts for _ in (EASY, HARD)]
    for split, order in zip(groups, plan, strict=True):
        taken.setdefault(split, []).append([(TEMPLATES[name], next(drawn[name])) for name in order])
    asked_in_order = [(split, *instance) for split, lists in taken.items() for instance in interleave(lists)]
    return tuple(
        question(graph, documents, template, slots, f"q{number:04d}", split)
        for number, (split, template, slots) in enumerate(asked_in_order, 1)
    )


def _plan(parts: Sequence[tuple[str, bool, int]], pool: Mapping[str, int]) -> list[list[str]]:
    """For every part its easy and then its hard questions, as template names in round robin."""
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
    """The order of the round robin: one template of every class, then the second of each, so classes come first."""
    seen: Counter[str] = Counter()
    ranked = []
    for template in templates:
        seen[template.class_] += 1
        ranked.append((seen[template.class_], template.name))
    return [name for _, name in sorted(ranked, key=itemgetter(0))]


def interleave(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    """Merge lists so that each is spread evenly over the whole; the order within each is kept."""
    taken = [0] * len(lists)
    for _ in range(sum(map(len, lists))):
        open_ = [place for place, items in enumerate(lists) if taken[place] < len(items)]
        place = min(open_, key=lambda place: (2 * taken[place] + 1) / len(lists[place]))
        yield lists[place][taken[place]]
        taken[place] += 1


def training_subset(questions: Sequence[Question], n: int) -> tuple[Question, ...]:
    """`n` of these questions with the same share of easy and hard ones and the templates in round robin.

    Works on any world's questions: where classes are not QC1 to QC10 there is one group. The order is a mixture too,
    so that a training run that stops early has seen all kinds.
    """
    if not 0 <= n <= len(questions):
        raise BadInput(f"cannot take {n} of {len(questions)} training questions.")
    groups: dict[int, list[Question]] = {}
    for item in questions:
        group = 0 if item.class_ in EASY else 1 if item.class_ in HARD else 2
        groups.setdefault(group, []).append(item)
    ordered = [_round_robin(groups[group]) for group in sorted(groups)]
    counts = _shares([len(items) for items in ordered], n)
    return tuple(interleave([items[:count] for items, count in zip(ordered, counts, strict=True)]))


def _round_robin(questions: Sequence[Question]) -> list[Question]:
    by_template: dict[tuple[str, str], list[Question]] = {}
    for item in questions:
        by_template.setdefault((item.class_, item.template), []).append(item)
    rank: Counter[str] = Counter()
    lists = []
    for (class_, _), items in by_template.items():
        rank[class_] += 1
        lists.append((rank[class_], items))
    lists.sort(key=itemgetter(0))
    longest = max((len(items) for _, items in lists), default=0)
    return [items[turn] for turn in range(longest) for _, items in lists if turn < len(items)]


def _shares(sizes: Sequence[int], n: int) -> list[int]:
    """Split n in proportion to sizes, the largest remainders rounded up."""
    total = sum(sizes)
    shares = [size * n // total if total else 0 for size in sizes]
    by_remainder = sorted(
        range(len(sizes)), key=lambda place: (-(sizes[place] * n % total), place) if total else (0, 0)
    )
    for place in by_remainder[: n - sum(shares)]:
        shares[place] += 1
    return shares
