"""Does the trained store help? One of three answers from two exams of the same questions, with what carries it.

`helps` and `hurts` are said only where stores that are equal would hardly ever differ as much: a test of accuracy and
one of actions, those of the intervals beside them, Holm over the two, 5%. Questions that share a key are taken
together. Accuracy comes first: fewer actions are no help while accuracy may have fallen by more than 3 points, and more
actions no harm where accuracy has risen.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import NormalDist, fmean
from typing import Literal

import msgspec

from kbgym.analysis.gradient import split
from kbgym.analysis.statistics import Estimate, Interval, Sampled, difference, holm, ratio, t_quantile
from kbgym.training.exam import Row

Word = Literal["helps", "no difference shown", "hurts"]
Pair = tuple[Row, Row]

UNSHOWN: Word = "no difference shown"
LEVEL = 0.05
MARGIN = 0.03  # of accuracy
GAIN = 0.20  # fewer actions: what a user would care to know
POWER = 0.80

# What a verdict's words mean, wherever one is shown.
WORDS = (
    "A trained store is the documents and what an agent wrote on top of them while it practised on other questions, "
    "mostly lists of where things stand (indexes); the flat store is the documents alone. An action is one search, one "
    "document opened, or the answer. Accuracy (F1) is how much of the right answer was given, from 0 to 1. n counts "
    "the questions, which both stores were asked. In brackets: between which two numbers the true one lies, with 95% "
    "confidence (the interval)."
)


class Finding(msgspec.Struct, frozen=True):
    """What two exams come to. `rho` is actions on the trained store over actions on the flat one; None without pairs.

    `more_questions`: how many more would show a gain of 20% in four of five cases; None without any.
    """

    word: Word
    n: int
    failed: int
    rho: Interval | None
    accuracy: Interval | None
    f1_flat: float
    f1_trained: float
    actions_flat: float
    actions_trained: float
    more_questions: int | None

    @property
    def said(self) -> str:
        """The sentence with what it is about."""
        return self.sentence if self.word == UNSHOWN else f"a trained store {self.sentence}"

    @property
    def sentence(self) -> str:
        if self.rho is None or self.accuracy is None:
            return "no difference shown: there is no question both stores were asked."
        saved, right = actions_in_words(self.rho), f"{self.f1_flat:.2f} to {self.f1_trained:.2f}, n = {self.n}"
        if self.word == "helps":
            if self.accuracy.low > 0:
                return f"helps: more right answers ({right}), {saved}."
            return f"helps: {saved}, accuracy not lower ({right})."
        if self.word == "hurts":
            if self.accuracy.high < 0:
                return f"hurts: fewer right answers ({right}), {saved}."
            return f"hurts: {saved}, accuracy not higher ({right})."
        if self.rho.high < 1 and self.accuracy.value < -MARGIN:
            return f"no difference shown: {saved}, but accuracy may have fallen ({right})."
        begin = f"no difference shown: {saved}, accuracy {right}"
        if self.more_questions is None:
            return f"{begin}."
        if not self.more_questions:
            return f"{begin}; a gain of {GAIN:.0%} would have shown in four exams of five."
        more = f"{self.more_questions:,} more question{'s' if self.more_questions > 1 else ''}"
        return f"{begin}; with {more} a gain of {GAIN:.0%} would show."


def paired_rows(trained: Sequence[Row], flat: Sequence[Row]) -> list[Pair]:
    """The same question on both stores, where neither agent failed."""
    base = {row.id: row for row in flat if row.f1 is not None}
    return [(row, base[row.id]) for row in trained if row.f1 is not None and row.id in base]


def judge(trained: Sequence[Row], flat: Sequence[Row], keys: Mapping[str, Sequence[Hashable]] | None = None) -> Finding:
    """`keys`: what a question, by its text, has in common with others; without, nothing."""
    pairs = paired_rows(trained, flat)
    failed = max(len(trained), len(flat)) - len(pairs)
    if not pairs:
        return Finding(UNSHOWN, 0, failed, None, None, 0.0, 0.0, 0.0, 0.0, None)
    f1, actions = split(pairs, "f1"), split(pairs, "actions")
    named = [(keys or {}).get(row.question, ()) for row, _ in pairs]
    rho, accuracy = ratio([Sampled(*actions, named)]), difference([Sampled(*f1, named)], scores=True)
    return Finding(
        word=_word(rho, accuracy),
        n=len(pairs),
        failed=failed,
        rho=rho.interval,
        accuracy=accuracy.interval,
        f1_trained=fmean(f1[0]),
        f1_flat=fmean(f1[1]),
        actions_trained=fmean(actions[0]),
        actions_flat=fmean(actions[1]),
        more_questions=more_questions(rho),
    )


def _word(rho: Estimate, accuracy: Estimate) -> Word:
    p_accuracy, p_actions = holm([accuracy.p, rho.p])
    if p_accuracy <= LEVEL:
        return "helps" if accuracy.value > 0 else "hurts"
    if p_actions <= LEVEL:
        if rho.value > 1:
            return "hurts"
        if accuracy.value >= -MARGIN:
            return "helps"
    return UNSHOWN


def more_questions(rho: Estimate, gain: float = GAIN) -> int | None:
    """How many more questions would show so large a gain in actions, were it there, in four of five experiments.

    From the spread seen so far, keys that recur included, at the level of the stricter of the two tests. A gain is
    hardly the same on every question, so the spread is taken to be as large as the gain at least; that makes a dozen
    questions the fewest. None where all questions have a key in common: nothing tells the spread.
    """
    if rho.n > 1 and not rho.freedom:
        return None
    effect = -math.log(1 - gain)
    spread = max(effect, rho.error * math.sqrt(rho.n))
    level, power = (NormalDist().inv_cdf(share) for share in (1 - LEVEL / 4, POWER))
    needed = math.ceil(((level + power) * spread / effect) ** 2)  # were the spread known
    while (level * _wider(rho, needed) + power) * spread > effect * math.sqrt(needed):
        needed += 1
    return max(0, needed - rho.n)


def _wider(rho: Estimate, n: int) -> float:
    """By how much Student's t is wider than the normal at so many questions, which have new keys as these have."""
    freedom = max(1, math.floor((rho.freedom + 1) * n / rho.n) - 1)
    return t_quantile(freedom) / t_quantile(1_000_000)


def actions_in_words(rho: Interval) -> str:
    """The ratio as a change in words: 38% fewer actions [21, 52], 5% fewer actions [9% more to 15% fewer]."""
    change, word = abs(1 - rho.value), "fewer" if rho.value <= 1 else "more"
    ends = sorted((1 - rho.low, 1 - rho.high), key=abs)
    if rho.low < 1 < rho.high:
        within = f"{_percent(rho.high - 1)}% more to {_percent(1 - rho.low)}% fewer"
    else:
        within = ", ".join(_percent(abs(end)) for end in ends)
    return f"{f'{change:.0%} {word}' if round(100 * change) else 'as many'} actions [{within}]"


def _percent(value: float) -> str:
    return f"{100 * value:.0f}" if math.isfinite(value) else "unknown "
