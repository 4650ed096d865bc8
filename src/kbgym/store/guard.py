"""The near-duplicate guard, which detects new sentences that the store already has.

Embeddings propose candidates, a judge decides, and the verdict is recorded so that replay never asks again. The
embedding alone must not decide: it ignores direction ("A is a child of B" and the reverse have a cosine of 0.97) and
almost ignores negation. Two indexes of one key need no judge. The guard knows no language: what an index is named by
and how sentences are compared is supplied (`index_keys` does both by rule; a model can be the judge).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

THRESHOLD = 0.90
NEIGHBOURS = 3
BY_KEY = "key"  # replaces the judge in a check of two indexes of one key


class Check(msgspec.Struct, frozen=True):
    """A neighbour that the judge was asked about."""

    id: str
    similarity: float
    judge: str
    duplicate: bool


class Verdict(msgspec.Struct, frozen=True):
    """The neighbours above the threshold or of the same key, nearest first, up to the first duplicate."""

    checks: tuple[Check, ...] = ()

    @property
    def duplicate_of(self) -> str | None:
        return next((check.id for check in self.checks if check.duplicate), None)


class Judge(Protocol):
    """Judge of whether two sentences say the same thing."""

    @property
    def name(self) -> str: ...

    async def duplicate(self, candidate: str, existing: str) -> bool: ...


SameIndex = Callable[[str, str], bool]  # True if two sentences are certainly indexes of one key


async def verdict(
    text: str,
    neighbours: Iterable[tuple[str, float]],
    text_of: Callable[[str], str],
    judge: Judge,
    same_index: SameIndex,
) -> Verdict:
    """Ask the judge about each neighbour that is near enough, until one is a duplicate.

    An index of the same key in other words is rarely above the threshold, but it is the nearest neighbour: with 17
    wordings and up to 40 keys each it always ranked first.
    """
    # Read all texts before the first judgement: a neighbour may be deleted while a slow judge works.
    near = [(id, float(similarity), text_of(id)) for id, similarity in neighbours]
    checks: list[Check] = []
    for id, similarity, existing in near:
        if same_index(text, existing):
            checks.append(Check(id, round(similarity, 4), BY_KEY, True))
        elif similarity > THRESHOLD:
            checks.append(Check(id, round(similarity, 4), judge.name, await judge.duplicate(text, existing)))
        if checks and checks[-1].duplicate:
            break
    return Verdict(tuple(checks))
