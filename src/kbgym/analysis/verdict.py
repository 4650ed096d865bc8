"""The verdict on a trained store, by comparison of two exams of the same questions.

The verdict is `helps`, `hurts` or `no difference shown`. Questions that share a key or a page are clustered. A store
helps if its answers are better, or if it takes fewer actions and accuracy is shown not to be lower by more than 3
points. It hurts if its answers are worse, or if it takes more actions and its answers are not better. Tests are at 5%,
Holm-adjusted over accuracy and actions; non-inferiority is read off the 95% interval of the F1 difference.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib.resources import files
from statistics import NormalDist, fmean
from typing import Literal

import msgspec

from kbgym.analysis.statistics import FEWEST, Estimate, Interval, Sampled, difference, holm, ratio, t_quantile
from kbgym.sanitize import counted
from kbgym.training.exam import Row
from kbgym.worlds.world import Question, World, pages_of

Word = Literal["helps", "no difference shown", "hurts"]
Accuracy = Literal["not lower", "undecided", "lower"]
Pair = tuple[Row, Row]
Keys = Mapping[str, Sequence[Hashable]]  # by the text of the question

UNSHOWN: Word = "no difference shown"
LEVEL = 0.05
MARGIN = 0.03  # of accuracy
GAIN = 0.20  # the smallest relative saving of actions of practical interest
POWER = 0.80

# Texts that define the terms of a verdict and of the tables.
TEXTS = msgspec.toml.decode((files("kbgym.analysis") / "words.toml").read_bytes(), type=dict[str, str])
WORDS = TEXTS["verdict"]
_UNKNOWN = Interval(math.nan, -math.inf, math.inf)


class Finding(msgspec.Struct, frozen=True):
    """A trained store compared with the flat store on the same questions.

    `rho` is actions on the trained store over actions on the flat store, `gain` the difference of F1. `effective` is
    the number of independent questions these are worth. `failed` counts questions left out because an agent failed on
    them. `more_questions` is how many more questions would show a saving of 20% with 80% power, or None if it cannot
    be estimated or such a saving is excluded already.
    """

    word: Word
    n: int
    failed: int
    accuracy: Accuracy = "undecided"
    rho: Interval = _UNKNOWN
    gain: Interval = _UNKNOWN
    effective: float = 0.0
    f1_flat: float = 0.0
    f1_trained: float = 0.0
    actions_flat: float = 0.0
    actions_trained: float = 0.0
    characters_flat: float = 0.0
    characters_trained: float = 0.0
    more_questions: int | None = None

    @property
    def too_few(self) -> bool:
        """Return True if there are too few keys or pages for any interval."""
        return self.effective < FEWEST

    @property
    def said(self) -> str:
        """Return the sentence with its subject."""
        return self.sentence if self.word == UNSHOWN else f"a trained store {self.sentence}"

    @property
    def sentence(self) -> str:
        if not self.n:
            return "no difference shown: there is no question both stores were asked."
        saved = actions_in_words(self.rho)
        low, high = (f"{end:+.2f}" for end in (self.gain.low, self.gain.high))
        right = f"F1 {self.f1_flat:.2f} to {self.f1_trained:.2f}, difference 95% CI [{low}, {high}], n = {self.n}"
        if self.too_few:
            return (
                f"no difference shown: too few pages. The {self.n} questions are worth {self.effective:.1f} that share "
                f"no key or page; a test needs {FEWEST} ({saved}, F1 {self.f1_flat:.2f} to {self.f1_trained:.2f})."
            )
        if self.word == "helps":
            parts = f"more right answers, {saved}" if self.gain.low > 0 else f"{saved}, accuracy not lower"
            return f"helps: {parts} ({right})."
        if self.word == "hurts":
            parts = f"fewer right answers, {saved}" if self.accuracy == "lower" else f"{saved}, accuracy not higher"
            return f"hurts: {parts} ({right})."
        begin = "" if self.rho.high < 1 else "no difference shown: "
        return f"{begin}{saved}; accuracy {self.accuracy} ({right}). {self.outlook}"

    @property
    def outlook(self) -> str:
        """Return the range that the interval of actions excludes, or how many more questions would decide."""
        if self.rho.high < 1:
            return "Fewer actions alone are no help: questions on more keys or pages would decide on accuracy."
        if self.rho.low > 1 - GAIN:
            return f"A saving of {1 - self.rho.low:.0%} or more is excluded."
        if not self.more_questions:
            return f"A saving of {GAIN:.0%} would have been shown in four exams of five."
        return f"With {counted(self.more_questions, 'more question')} a saving of {GAIN:.0%} would show."


def shared_keys(world: World, asked: Iterable[Question] = ()) -> dict[str, tuple[Hashable, ...]]:
    """Return the keys each question names, by its text, or else the pages of its supports.

    `asked` are questions that the world does not hold.
    """
    pages = pages_of(world.documents)
    return {
        one.text: one.keys or tuple(dict.fromkeys(pages.get(id, id) for id in one.support))
        for one in (*world.questions, *asked)
    }


def paired_rows(trained: Iterable[Row], flat: Iterable[Row]) -> list[Pair]:
    """Pair the rows of the same question on both stores, without questions an agent failed on."""
    base = {row.id: row for row in flat if row.f1 is not None}
    return [(row, base[row.id]) for row in trained if row.f1 is not None and row.id in base]


def split(pairs: Sequence[Pair], field: str) -> tuple[list[float], list[float]]:
    """Return one field of the rows on an arm and on its base."""
    return [getattr(a, field) or 0.0 for a, _ in pairs], [getattr(b, field) or 0.0 for _, b in pairs]


def right_in(pairs: Iterable[Pair]) -> dict[str, int]:
    """Count the questions answered right on both stores, on one of them, and on neither."""
    found = {"both": 0, "flat": 0, "trained": 0, "neither": 0}
    names = {(True, True): "both", (False, True): "flat", (True, False): "trained", (False, False): "neither"}
    for after, before in pairs:
        found[names[after.f1 == 1.0, before.f1 == 1.0]] += 1
    return found


def judge(trained: Sequence[Row], flat: Sequence[Row], keys: Keys | None = None) -> Finding:
    """Compare two exams of the same questions; questions without `keys` are taken as independent."""
    pairs = paired_rows(trained, flat)
    failed = max(len(trained), len(flat)) - len(pairs)
    if not pairs:
        return Finding(UNSHOWN, 0, failed)
    fields = {field: split(pairs, field) for field in ("f1", "actions", "characters")}
    named = [(keys or {}).get(row.question, ()) for row, _ in pairs]
    rho = ratio([Sampled(*fields["actions"], named)])
    gain = difference([Sampled(*fields["f1"], named)], scores=True)
    means = {
        f"{field}_{side}": fmean(values)
        for field, both in fields.items()
        for side, values in zip(("trained", "flat"), both, strict=True)
    }
    accuracy = accuracy_of(gain)
    return Finding(
        word=word_of(rho, gain, accuracy),
        n=len(pairs),
        failed=failed,
        accuracy=accuracy,
        rho=rho.interval,
        gain=gain.interval,
        effective=rho.effective,
        more_questions=None if rho.interval.low > 1 - GAIN else more_questions(rho),
        **means,
    )


def accuracy_of(gain: Estimate) -> Accuracy:
    """Decide on accuracy by the 95% interval of the F1 difference, against the margin of 3 points."""
    found = gain.interval
    if found.low > -MARGIN:
        return "not lower"
    return "lower" if found.high < 0 else "undecided"


def word_of(rho: Estimate, gain: Estimate, accuracy: Accuracy) -> Word:
    p_gain, p_actions = holm([gain.p, rho.p])
    if p_gain <= LEVEL:
        if gain.value < 0:
            return "hurts"
        if accuracy == "not lower":
            return "helps"
    if p_actions <= LEVEL:
        if rho.value > 1:
            return "hurts"
        if accuracy == "not lower":
            return "helps"
    return UNSHOWN


def more_questions(rho: Estimate, gain: float = GAIN) -> int | None:
    """Return how many more questions would show such a gain in actions with 80% power, or None if unknown.

    The spread is estimated from these questions and their keys, at the level of the stricter of the two tests. It is
    taken as at least the gain itself, because a gain is hardly the same on every question; so at least a dozen
    questions are needed.
    """
    if not rho.freedom:
        return None
    effect = -math.log(1 - gain)
    spread = max(effect, rho.error * math.sqrt(rho.n))
    level, power = (NormalDist().inv_cdf(share) for share in (1 - LEVEL / 4, POWER))
    needed = math.ceil(((level + power) * spread / effect) ** 2)  # for a known spread
    while (level * _wider(rho, needed) + power) * spread > effect * math.sqrt(needed):
        needed += 1
    return max(0, needed - rho.n)


def _wider(rho: Estimate, n: int) -> float:
    """Return how much wider Student's t is than the normal at n questions whose keys repeat as these do."""
    freedom = max(1, math.floor((rho.freedom + 1) * n / rho.n) - 1)
    return t_quantile(freedom) / t_quantile(1_000_000)


def actions_in_words(rho: Interval) -> str:
    """Format a ratio as a change: 38% fewer actions [21, 52], or 5% fewer actions [9% more to 15% fewer]."""
    change, word = abs(1 - rho.value), "fewer" if rho.value <= 1 else "more"
    said = f"{f'{change:.0%} {word}' if round(100 * change) else 'as many'} actions"
    if not math.isfinite(rho.high):
        return said
    ends = sorted((1 - rho.low, 1 - rho.high), key=abs)
    if rho.low < 1 < rho.high:
        return f"{said} [{100 * (rho.high - 1):.0f}% more to {100 * (1 - rho.low):.0f}% fewer]"
    return f"{said} [{', '.join(f'{100 * abs(end):.0f}' for end in ends)}]"
