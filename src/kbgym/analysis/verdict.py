"""Compare two exams of the same questions and say whether the trained store helps.

The verdict is `helps`, `hurts` or `no difference shown`. The first two require a test of accuracy or of actions at 5%,
Holm-adjusted over the two, with questions that share a key or a page clustered. Accuracy comes first: fewer actions do
not help if accuracy may have fallen by more than 3 points, and more actions do not hurt if accuracy has risen.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from statistics import NormalDist, fmean
from typing import Any, Literal

import msgspec

from kbgym.analysis.statistics import Estimate, Interval, Sampled, difference, holm, ratio, t_quantile
from kbgym.training.exam import Row
from kbgym.worlds.world import Question, World, pages_of

Word = Literal["helps", "no difference shown", "hurts"]
Pair = tuple[Row, Row]
Keys = Mapping[str, Sequence[Hashable]]  # by the text of the question

UNSHOWN: Word = "no difference shown"
LEVEL = 0.05
MARGIN = 0.03  # of accuracy
GAIN = 0.20  # the relative saving of actions that users care about
POWER = 0.80
FEW_PAGES = 10

# Defines the words of a verdict wherever one is shown.
WORDS = (
    "A trained store is the documents plus what an agent wrote while it practised on other questions, mostly lists of "
    "where facts are (indexes). The flat store is the documents alone. An action is one search, one opened document or "
    "the answer. Accuracy (F1, from 0 to 1) is the share of the expected answer that was given. n is the number of "
    "questions, which both stores were asked. Brackets hold the 95% confidence interval."
)
_UNKNOWN = Interval(math.nan, -math.inf, math.inf)


class Finding(msgspec.Struct, frozen=True):
    """A trained store compared with the flat store on the same questions.

    `rho` is actions on the trained store over actions on the flat store; `failed` counts questions left out because an
    agent failed on them. `more_questions` is how many more questions would show a saving of 20% with 80% power, or None
    if it cannot be estimated.
    """

    word: Word
    n: int
    failed: int
    rho: Interval = _UNKNOWN
    accuracy: Interval = _UNKNOWN
    f1_flat: float = 0.0
    f1_trained: float = 0.0
    actions_flat: float = 0.0
    actions_trained: float = 0.0
    characters_flat: float = 0.0
    characters_trained: float = 0.0
    more_questions: int | None = None

    @property
    def said(self) -> str:
        """Return the sentence with its subject."""
        return self.sentence if self.word == UNSHOWN else f"a trained store {self.sentence}"

    @property
    def sentence(self) -> str:
        if not self.n:
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


def shared_keys(world: World, asked: Iterable[Question] = ()) -> dict[str, tuple[Hashable, ...]]:
    """Return what each question, by its text, may share with others: the keys it names, or the pages of its supports.

    Sentences take the place of pages if all answers rest on fewer than ten pages. `asked` are questions that the world
    does not hold.
    """
    questions, pages = (*world.questions, *asked), pages_of(world.documents)
    if len({pages.get(id) for one in questions for id in one.support}) < FEW_PAGES:
        pages = {}
    return {one.text: one.keys or tuple(dict.fromkeys(pages.get(id, id) for id in one.support)) for one in questions}


def paired_rows(trained: Iterable[Row], flat: Iterable[Row]) -> list[Pair]:
    """Pair the rows of the same question on both stores, without questions an agent failed on."""
    base = {row.id: row for row in flat if row.f1 is not None}
    return [(row, base[row.id]) for row in trained if row.f1 is not None and row.id in base]


def split(pairs: Sequence[Pair], field: str) -> tuple[list[float], list[float]]:
    """Return one field of the rows on an arm and on its base."""
    return [getattr(a, field) or 0.0 for a, _ in pairs], [getattr(b, field) or 0.0 for _, b in pairs]


def judge(trained: Sequence[Row], flat: Sequence[Row], keys: Keys | None = None) -> Finding:
    """Compare two exams of the same questions; questions without `keys` are taken as independent."""
    pairs = paired_rows(trained, flat)
    failed = max(len(trained), len(flat)) - len(pairs)
    if not pairs:
        return Finding(UNSHOWN, 0, failed)
    fields = {field: split(pairs, field) for field in ("f1", "actions", "characters")}
    named = [(keys or {}).get(row.question, ()) for row, _ in pairs]
    rho = ratio([Sampled(*fields["actions"], named)])
    accuracy = difference([Sampled(*fields["f1"], named)], scores=True)
    means = {
        f"{field}_{side}": fmean(values)
        for field, both in fields.items()
        for side, values in zip(("trained", "flat"), both, strict=True)
    }
    return Finding(
        word=_word(rho, accuracy),
        n=len(pairs),
        failed=failed,
        rho=rho.interval,
        accuracy=accuracy.interval,
        more_questions=more_questions(rho),
        **means,
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
    """Return how many more questions would show such a gain in actions with 80% power, or None if unknown.

    The spread is estimated from these questions and their keys, at the level of the stricter of the two tests. It is
    taken as at least the gain itself, because a gain is hardly the same on every question; so at least a dozen
    questions are needed. It is unknown if all questions share a key.
    """
    if rho.n > 1 and not rho.freedom:
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
    ends = sorted((1 - rho.low, 1 - rho.high), key=abs)
    if rho.low < 1 < rho.high:
        within = f"{_percent(rho.high - 1)}% more to {_percent(1 - rho.low)}% fewer"
    else:
        within = ", ".join(_percent(abs(end)) for end in ends)
    return f"{f'{change:.0%} {word}' if round(100 * change) else 'as many'} actions [{within}]"


def _percent(value: float) -> str:
    return f"{100 * value:.0f}" if math.isfinite(value) else "unknown "


# Classes that a reader can answer by following single documents; the others need a relation as a whole.
CHAINS = ("QC1", "QC2", "QC3", "QC9")


def headroom(
    examined: Mapping[int, Sequence[tuple[Sequence[Row], Keys]]],
) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
    """Return the number of questions by size and kind, and mean F1 and actions with their intervals by cell id.

    `examined` holds one exam of a flat store, with the keys of its questions, for every world of a size.
    """
    counts, cells = dict[str, int](), dict[str, dict[str, Any]]()
    for size, worlds in examined.items():
        for kind in ("chains", "relations"):
            wanted = [
                ([row for row in rows if row.f1 is not None and (row.class_ in CHAINS) == (kind == "chains")], keys)
                for rows, keys in worlds
            ]
            counts[f"{size}/{kind}"] = sum(len(rows) for rows, _ in wanted)
            for field in ("f1", "actions"):
                samples = [
                    Sampled(
                        [getattr(row, field) for row in rows], [0.0] * len(rows), [keys[row.question] for row in rows]
                    )
                    for rows, keys in wanted
                ]
                found = difference(samples, scores=field == "f1").interval
                text = f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
                cells[f"headroom/{size}/{kind}/{field}"] = {"text": text, **msgspec.to_builtins(found)}
    return counts, cells
