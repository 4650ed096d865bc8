"""Evidence: the supporting documents of a question that a pass was shown, and when, from its transcript alone.

It separates retrieval from reasoning: a wrong answer despite the evidence is a different failure from missing evidence.
For questions without supports, or with an answer that occurs anywhere (a small number, yes or no), it is None, not 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kbgym.gym.actions import shown_by
from kbgym.gym.episode import Transcript
from kbgym.gym.grading import normalise
from kbgym.worlds.world import Question

_TOO_SHORT = 3  # length of a gold, in letters and digits, that may occur by chance


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """`seen`: for each support that was shown, the first action that showed it, in order. `supports`: the number of
    supports. `gold`: the first action that showed an accepted answer, 0 if none did, None if undetermined.
    `characters`: the number of characters read until the last support, if all were seen.
    """

    supports: int = 0
    seen: tuple[int, ...] = ()
    gold: int | None = None
    characters: int | None = None

    @property
    def share(self) -> float | None:
        """Return the share of the supports that was shown; None if there are none."""
        return len(self.seen) / self.supports if self.supports else None

    def all_within(self, actions: int) -> bool:
        """Return True if every support was shown within this number of actions."""
        return len(self.seen) == self.supports and (not self.seen or self.seen[-1] <= actions)

    @property
    def actions(self) -> int | None:
        """Return the number of the action that completed the evidence."""
        return self.seen[-1] if self.supports and len(self.seen) == self.supports else None


def evidence_of(transcript: Transcript, question: Question) -> Evidence:
    """Return the evidence that a pass was shown."""
    wanted, seen = set(question.support), []
    plain = [] if question.unanswerable else [normalise(gold) for gold in question.golds]
    golds = [gold for gold in plain if len(gold.replace(" ", "")) >= _TOO_SHORT and gold not in ("yes", "no")]
    read, characters, gold = 0, None, 0 if golds else None
    for number, step in enumerate(transcript.steps, 1):
        read += len(step.observation.text)
        found = wanted.intersection(shown_by(step.result))
        if found:
            wanted -= found
            seen += [number] * len(found)
            characters = read if not wanted else None
        if gold == 0 and shown_by(step.result):
            said = f" {normalise(step.observation.text)} "
            if any(f" {one} " in said for one in golds):
                gold = number
    return Evidence(len(set(question.support)), tuple(seen), gold, characters)


def summarise_evidence(found: Iterable[Evidence | None], budget: int) -> dict[str, Any]:
    """Return the fields of `exam.Summary` about evidence; entry k of the last: all seen by action k + 1."""
    told = [one for one in found if one is not None]
    supported = [one for one in told if one.supports]
    by_action = tuple(_mean([float(one.all_within(k)) for one in supported]) or 0.0 for k in range(1, budget + 1))
    return {
        "evidence_n": len(supported),
        "first_page": _mean([one.seen.count(1) / one.supports for one in supported]),
        "evidence": _mean([one.share or 0.0 for one in supported]),
        "evidence_all": _mean([float(len(one.seen) == one.supports) for one in supported]),
        "gold_seen": _mean([float(one.gold > 0) for one in told if one.gold is not None]),
        "evidence_all_by_action": by_action if supported else (),
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None
