"""Splits of generated worlds, and proportional mixing and sampling of questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TypeVar

import msgspec

from kbgym.errors import BadInput
from kbgym.worlds.world import Question, World, pages_of

T = TypeVar("T")


class Sizes(msgspec.Struct, frozen=True):
    """The number of questions in each split; eval has a part of trained and a part of reserved templates."""

    train: int = 150
    test_in: int = 100
    test_out: int = 50
    eval_in: int = 20
    eval_out: int = 10

    def __post_init__(self) -> None:
        for name, size in msgspec.structs.asdict(self).items():
            if size < 0:
                raise BadInput(f"the split {name} cannot have {size} questions.")

    def parts(self) -> list[tuple[str, bool, int]]:
        """Return (split, True for reserved templates, number of questions) of every part."""
        return [
            ("train", False, self.train),
            ("test_in", False, self.test_in),
            ("test_out", True, self.test_out),
            ("eval", False, self.eval_in),
            ("eval", True, self.eval_out),
        ]


def interleave(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    """Merge lists so that each is spread evenly over the result; the order within each is kept."""
    taken = [0] * len(lists)
    for _ in range(sum(map(len, lists))):
        open_ = [place for place, items in enumerate(lists) if taken[place] < len(items)]
        place = min(open_, key=lambda place: (2 * taken[place] + 1) / len(lists[place]))
        yield lists[place][taken[place]]
        taken[place] += 1


def in_splits(parts: Iterable[tuple[str, Sequence[T]]]) -> list[tuple[str, T]]:
    """Return the splits in sequence, with the parts of each mixed evenly."""
    splits: dict[str, list[Sequence[T]]] = {}
    for split, part in parts:
        splits.setdefault(split, []).append(part)
    return [(split, one) for split, lists in splits.items() for one in interleave(lists)]


def training_subset(
    questions: Sequence[Question], n: int, difficulty: Callable[[Question], int]
) -> tuple[Question, ...]:
    """Return `n` questions with the same share of each difficulty and the templates in round-robin order.

    The order is mixed, so that a training run that stops early has seen all templates.
    """
    if not 0 <= n <= len(questions):
        raise BadInput(f"cannot take {n} of {len(questions)} training questions.")
    groups: dict[int, list[Question]] = {}
    for item in questions:
        groups.setdefault(difficulty(item), []).append(item)
    ordered = [_round_robin(groups[group]) for group in sorted(groups)]
    counts = shares([len(items) for items in ordered], n)
    return tuple(interleave([items[:count] for items, count in zip(ordered, counts, strict=True)]))


def _round_robin(questions: Sequence[Question]) -> list[Question]:
    by_template: dict[tuple[str, str], list[Question]] = {}
    for item in questions:
        by_template.setdefault((item.class_, item.template), []).append(item)
    rank: dict[str, int] = {}
    lists = []
    for (class_, _), items in by_template.items():
        rank[class_] = rank.get(class_, 0) + 1
        lists.append((rank[class_], items))
    lists.sort(key=lambda pair: pair[0])
    longest = max((len(items) for _, items in lists), default=0)
    return [items[turn] for turn in range(longest) for _, items in lists if turn < len(items)]


def sharing(world: World) -> int:
    """Return the number of test questions that share a supporting page with a training question."""
    pages = pages_of(world.documents)
    trained = {pages[id] for question in world.split("train") for id in question.support if id in pages}
    tested = (question for name in ("test_in", "test_out") for question in world.split(name))
    return sum(any(pages.get(id) in trained for id in question.support) for question in tested)


def with_pages_apart(world: World, seed: int) -> World:
    """Redraw the splits of a world so that no page supports questions of two splits.

    Questions that share a page, directly or through others, stay together. Each such group, the largest first, goes to
    the split that is furthest from its present share. Questions of other splits are not moved.
    """
    pages = pages_of(world.documents)
    sizes = {name: len(world.split(name)) for name in ("train", "test_in", "eval") if world.split(name)}
    open_ = [question for question in world.questions if question.split in sizes]
    groups: list[tuple[set[str], list[Question]]] = []
    for question in open_:
        mine = {pages[id] for id in question.support if id in pages}
        joined = [group for group in groups if group[0] & mine]
        groups = [group for group in groups if not group[0] & mine]
        groups.append(
            (mine.union(*(group[0] for group in joined)), [q for group in joined for q in group[1]] + [question])
        )
    lists = [sorted(group[1], key=lambda question: question.id) for group in groups]
    lists.sort(key=lambda group: group[0].id)
    Random(f"{seed}:pages apart").shuffle(lists)
    lists.sort(key=lambda group: -len(group))
    left, chosen = dict(sizes), {}
    for group in lists:
        name = max(left, key=lambda name: left[name] / sizes[name])
        left[name] -= len(group)
        chosen.update({question.id: name for question in group})
    moved = (msgspec.structs.replace(one, split=chosen.get(one.id, one.split)) for one in world.questions)
    return msgspec.structs.replace(world, questions=tuple(moved))


def shares(sizes: Sequence[int], n: int) -> list[int]:
    """Divide n in proportion to sizes by the largest remainder method."""
    total = sum(sizes)
    found = [size * n // total for size in sizes]
    for place in sorted(range(len(sizes)), key=lambda place: -(sizes[place] * n % total))[: n - sum(found)]:
        found[place] += 1
    return found
