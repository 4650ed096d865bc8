"""The near-duplicate guard, which detects new sentences that the store already has.

Embeddings propose candidates, a judge decides, and the verdict is recorded so that replay never asks again. The
embedding alone must not decide: it ignores direction ("A is a child of B" and the reverse have a cosine of 0.97) and
almost ignores negation. The default judge is a rule; a model can replace it through the same interface. Two indexes of
one key are the same index, however they are worded ("Interpreters", "People whose job is interpreter"), and need no
judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from kbgym.index_keys import same_key, tokens

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


async def verdict(
    text: str, neighbours: Iterable[tuple[str, float]], text_of: Callable[[str], str], judge: Judge
) -> Verdict:
    """Ask the judge about each neighbour that is near enough, until one is a duplicate.

    An index of the same key in other words is rarely above the threshold, but it is the nearest neighbour: with 17
    wordings and up to 40 keys each it always ranked first.
    """
    # Read all texts before the first judgement: a neighbour may be deleted while a slow judge works.
    near = [(id, float(similarity), text_of(id)) for id, similarity in neighbours]
    checks: list[Check] = []
    for id, similarity, existing in near:
        if same_key(text, existing):
            checks.append(Check(id, round(similarity, 4), BY_KEY, True))
        elif similarity > THRESHOLD:
            checks.append(Check(id, round(similarity, 4), judge.name, await judge.duplicate(text, existing)))
        if checks and checks[-1].duplicate:
            break
    return Verdict(tuple(checks))


class RuleJudge:
    """Duplicates have the same names and the same words, each in the same order, and the same polarity.

    Stop words do not count, and synonyms in index sentences are treated as one word. In doubt the answer is no: a
    redundant document costs little, but a wrong merge loses a fact.
    """

    name = "rule"

    async def duplicate(self, candidate: str, existing: str) -> bool:
        names, polarity, words = signature(candidate)
        return bool(names or words) and (names, polarity, words) == signature(existing)


_SMALL = frozenset(
    "a an the of is are was be in at on to for as and who whom whose which that all every each s"
    " person people persons everyone everybody anyone index list directory overview document documents".split()
)
_NEGATIONS = frozenset("not no never none without nobody nothing isn't aren't doesn't don't wasn't".split())
# Synonyms in index sentences; each row is replaced by its first word.
_SYNONYMS = {
    word: row.split()[0]
    for row in (
        "live lives living resident residents inhabitant inhabitants dwell city town",
        "job jobs work works working profession occupation employed",
        "hobby hobbies pastime pastimes",
        "friend friends",
        "child children kid kids",
        "grandchild grandchildren",
    )
    for word in row.split()
}


def signature(text: str) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """Return the terms the rule compares: names and signs in order, negation, and other words with synonyms folded."""
    names: list[str] = []
    words: dict[str, None] = {}
    negations = 0
    for token in tokens(text):
        word = token.removesuffix("'s").removesuffix("’s")
        small = word.casefold()
        if small in _NEGATIONS:
            negations += 1
        elif small in _SMALL:
            continue
        elif small in _SYNONYMS:
            words[_SYNONYMS[small]] = None
        elif word[0].isupper() or not word[0].isalpha() or not (names or words):
            # The first word of a sentence may be capitalised anyway, so the first that counts is treated as a name.
            names.append(small)
        else:
            words[small] = None
    return tuple(names), negations % 2, tuple(words)


__all__ = ["NEIGHBOURS", "THRESHOLD", "Check", "Judge", "RuleJudge", "Verdict", "signature", "verdict"]
