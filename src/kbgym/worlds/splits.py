"""How many questions the splits of a made world have, and how lists of questions are mixed and cut fairly.

It knows nothing of what the questions ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from kbgym.errors import BadInput
from kbgym.worlds.world import Question

T = TypeVar("T")


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


def interleave(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    """Merge lists so that each is spread evenly over the whole; the order within each is kept."""
    taken = [0] * len(lists)
    for _ in range(sum(map(len, lists))):
        open_ = [place for place, items in enumerate(lists) if taken[place] < len(items)]
        place = min(open_, key=lambda place: (2 * taken[place] + 1) / len(lists[place]))
        yield lists[place][taken[place]]
        taken[place] += 1


def training_subset(
    questions: Sequence[Question], n: int, difficulty: Callable[[Question], int]
) -> tuple[Question, ...]:
    """`n` of these questions with the same share of each difficulty and the templates in round robin.

    The order is a mixture too, so that a training run that stops early has seen all kinds.
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


def shares(sizes: Sequence[int], n: int) -> list[int]:
    """Split n in proportion to sizes, the largest remainders rounded up."""
    total = sum(sizes)
    found = [size * n // total for size in sizes]
    for place in sorted(range(len(sizes)), key=lambda place: -(sizes[place] * n % total))[: n - sum(found)]:
        found[place] += 1
    return found
