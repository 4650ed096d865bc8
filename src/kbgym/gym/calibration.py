"""Choose the threshold of the reserved slot on questions whose evidence is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kbgym.gym.environment import Environment, learnt_from

COST = 0.1  # cost of a slot without evidence, as a share of a question's evidence
# Margin for other wordings, which score lower. On 150 pages of passages calibration chose 0.42: 0.32 kept all evidence
# gained for other wordings (0.70 on the first page), 0.42 lost a seventh, and 0.22 only cost characters.
MARGIN = 0.1
_CANDIDATES = 10  # indexes searched for one that was made from other words


def calibrate(environment: Environment, questions: Iterable[tuple[str, Collection[str]]]) -> float | None:
    """Return the threshold at which slots show the most evidence; None if no question can tell.

    `questions` are texts with their supports. The value of a slot is the share of the supports that it shows, or
    -`COST` if it shows none. Evidence that the page shows anyway counts too: a right index for this wording is one for
    other wordings. An index with the question's own text is excluded, because it is not informative about other
    wordings. Where slots cost more than they show, only an index that matches better than all of theirs is shown.
    """
    valued = sorted((one for text, support in questions if (one := _value(environment, text, support))), reverse=True)
    best, total, threshold = 0.0, 0.0, round(valued[0][0] + MARGIN, 4) if valued else None
    for place, (score, value) in enumerate(valued):
        total += value
        last_of_score = place + 1 == len(valued) or valued[place + 1][0] < score
        if last_of_score and total > best:
            best, threshold = total, round(score - MARGIN, 4)
    return threshold


def _value(environment: Environment, text: str, support: Collection[str]) -> tuple[float, float] | None:
    """Return the score of the best index for a question and the value of showing it."""
    trained, store = environment.engine.trained, environment.store
    if trained is None or not support:
        return None
    own = text.casefold().rstrip(" ?.!")  # as an alias begins
    hits = trained.match(text, _CANDIDATES)
    hit = next((hit for hit in hits if own not in store[hit[0]].text.casefold()), None)
    if hit is None:
        return None
    shown = set(support).intersection(learnt_from(store, hit[0]).targets)
    return hit[1], len(shown) / len(set(support)) or -COST
