"""What models used, pass by pass from the records: requests, malformed replies, retries, tokens and money.

Only where a model played; the reference agents use nothing of this. A malformed reply cost a request, never an action.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kbgym.analysis.cells import Cell, Line, Source, Table, number
from kbgym.analysis.results import POOLED, Results
from kbgym.errors import Damaged
from kbgym.llm.values import Usage
from kbgym.protocol.exam import Row
from kbgym.trace.events import Ended

HEADS = (
    "passes",
    "agent failed",
    "requests",
    "malformed",
    "retries",
    "prompt tokens",
    "of them cached",
    "completion tokens",
    "of them reasoning",
    "cost, $",
)


class _Sum(msgspec.Struct):
    """Passes added up."""

    passes: int = 0
    failed: int = 0
    usage: Usage = Usage()

    def add(self, one: Ended | Row) -> None:
        self.passes += 1
        self.failed += one.outcome == "agent_failed"
        try:
            self.usage += msgspec.convert(one.usage or {}, Usage)
        except msgspec.ValidationError as error:
            raise Damaged(f"what a pass says it used does not fit: {error}.") from error


def model_usage(results: Results) -> Table | None:
    """A line for the forward and the backward passes of each training and for the exams of each arm."""
    lines: list[Line] = []
    for arm in results.trainings:
        traces = [Source(seed.trained[arm].trace, "usage of end events") for seed in results.seeds]
        ended = [e for seed in results.seeds for e in seed.trained[arm].place.events if isinstance(e, Ended)]
        for phase in ("forward", "backward"):
            found = _added(event for event in ended if event.phase == phase)
            lines += _line(f"training {results.label(arm)}, {phase}", f"usage/{arm}/{phase}", found, traces)
    for arm in results.arms:
        rows = (row for seed in results.seeds for group in results.groups for row in seed.rows(arm, group))
        files = results.sources(arm, POOLED, "usage")
        lines += _line(f"exams of {results.label(arm)}", f"usage/{arm}/exam", _added(rows), files)
    if not lines:
        return None
    rates = [cell.value for line in lines for cell in line.cells if cell and cell.id.endswith("/malformed")]
    worst = max(float(rate) for rate in rates if rate is not None)
    sentence = (
        f"At most {worst:.1%} of a line's replies were malformed; each was corrected within the pass's allowance or "
        "ended it as the agent's failure, which is never scored."
    )
    return Table("usage", "What the models used", HEADS, tuple(lines), results.caption(), sentence, "passes")


def _added(passes: Iterable[Ended | Row]) -> _Sum:
    found = _Sum()
    for one in passes:
        found.add(one)
    return found


def _line(head: str, id: str, found: _Sum, files: list[Source]) -> list[Line]:
    usage = found.usage
    if not usage.requests:
        return []

    def count(name: str, value: float | None, what: str, digits: int = 0, percent: bool = False) -> Cell:
        return number(f"{id}/{name}", value, what, files, digits, percent)

    return [
        Line(
            head,
            (
                count("passes", found.passes, "passes, all seeds"),
                count("failed", found.failed, "passes that ended as agent failed; they have no score"),
                count("requests", usage.requests, "requests answered"),
                count("malformed", usage.malformed_rate, "malformed replies over requests", 1, True),
                count("retries", usage.retries, "requests tried again after a provider's error"),
                count("prompt", usage.prompt, "prompt tokens, cached ones included"),
                count("cached", usage.cached, "prompt tokens the provider had cached"),
                count("completion", usage.completion, "completion tokens, reasoning included"),
                count("reasoning", usage.reasoning, "completion tokens spent on reasoning"),
                count("cost", usage.cost, "dollars by the bundled price table; empty where a price is unknown", 4),
            ),
        )
    ]
