"""What verbs that learn share: the flags of the gate, and a store opened for learning by a verb's flags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from kbgym.cli.common import flags, serving_settings
from kbgym.cli.spending import Spending, training_plan
from kbgym.progress import ProgressCallback
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.question_log import Questions
from kbgym.serving.learning.setup import open_online
from kbgym.training.gate import MARGIN

gate_options = flags(
    click.option("--gate", type=click.IntRange(min=0), default=0, help="Admit edits only after re-asking N questions."),
    click.option(
        "--margin", type=float, default=MARGIN, show_default=True, help="By how much F1 may fall at the gate."
    ),
    click.option("--evidence", type=int, default=0, help="How many questions must be able to tell what edits do."),
    click.option("--held-out", type=click.Path(path_type=Path, dir_okay=False), help="Questions for the gate."),
)


@contextmanager
def opened_online(
    place: str, given: dict[str, Any], lessons: int, tick: ProgressCallback, questions: Questions | None = None
) -> Iterator[Online]:
    """A store open for questions and edits; flags that are none of the gate's or the spending's replace its settings.

    What so many lessons will cost is said and confirmed before anything is opened.
    """
    spending = Spending(given)
    gate = {name: given.pop(name) for name in ("gate", "margin", "evidence", "held_out")}
    known = {"reader": None, "curator": None, "judge": None, "trust": False, **given}
    settings, trusted = serving_settings(place, known)
    names = (settings.reader, settings.curator, settings.judge)
    with spending.models(names, None) as models:
        # Every question is also asked of the flat store, and the gate asks again.
        spending.confirm_all(training_plan(settings, lessons, lessons * (1 + gate["gate"])))
        yield open_online(
            place,
            settings,
            given.get("embedder"),
            **gate,
            tick=tick,
            questions=questions,
            trusted=trusted,
            models=models,
        )
