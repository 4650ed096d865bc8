"""What models used, pass by pass from the records: requests, malformed replies, retries, tokens and money.

Only where a model played; the reference agents use nothing of this. A malformed reply cost a request, never an action.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kbgym.agents.llm.values import Usage
from kbgym.analysis.cells import CellSource, Line, Table, number
from kbgym.analysis.results import POOLED, Results
from kbgym.trace.events import Ended
from kbgym.training.exam import Row

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


def model_usage(results: Results) -> Table | None:
    """A line for the forward and the backward passes of each training and for the exams of each arm."""
    lines: list[Line] = []
    for arm in results.trainings:
        traces = [CellSource(seed.trained[arm].trace, "usage of end events") for seed in results.seeds]
        ended = [e for seed in results.seeds for e in seed.trained[arm].place.events if isinstance(e, Ended)]
        for phase in ("forward", "backward"):
            passes = [event for event in ended if event.phase == phase]
            lines += _line(f"training {results.label(arm)}, {phase}", f"usage/{arm}/{phase}", passes, traces)
    for arm in results.arms:
        rows = (row for seed in results.seeds for group in results.groups for row in seed.rows(arm, group))
        files = results.sources(arm, POOLED, "usage")
        lines += _line(f"exams of {results.label(arm)}", f"usage/{arm}/exam", rows, files)
    if not lines:
        return None
    rates = [cell.value for line in lines for cell in line.cells if cell and cell.id.endswith("/malformed")]
    worst = max(float(rate) for rate in rates if rate is not None)
    sentence = (
        f"At most {worst:.1%} of a line's replies were malformed; each was corrected within the pass's allowance or "
        "ended it as the agent's failure, which is never scored."
    )
    return Table("usage", "What the models used", HEADS, lines, results.caption(), sentence, "passes")


def _line(head: str, id: str, passes: Iterable[Ended | Row], files: list[CellSource]) -> list[Line]:
    """The passes added up; no line where no model was asked."""
    count, failed, usage = 0, 0, Usage()
    for one in passes:
        count += 1
        failed += one.outcome == "agent_failed"
        usage += msgspec.convert(one.usage or {}, Usage)
    if not usage.requests:
        return []
    measures: list[tuple[str, float | None, str]] = [
        ("passes", count, "passes, all seeds"),
        ("failed", failed, "passes that ended as agent failed; they have no score"),
        ("requests", usage.requests, "requests answered"),
        ("malformed", usage.malformed_rate, "malformed replies over requests"),
        ("retries", usage.retries, "requests tried again after a provider's error"),
        ("prompt", usage.prompt, "prompt tokens, cached ones included"),
        ("cached", usage.cached, "prompt tokens the provider had cached"),
        ("completion", usage.completion, "completion tokens, reasoning included"),
        ("reasoning", usage.reasoning, "completion tokens spent on reasoning"),
        ("cost", usage.cost, "dollars by the bundled price table; empty where a price is unknown"),
    ]
    digits = {"malformed": 1, "cost": 4}
    cells = [
        number(f"{id}/{name}", value, what, files, digits.get(name, 0), name == "malformed")
        for name, value, what in measures
    ]
    return [Line(head, cells)]
