"""Preference pairs from exams: two passes on one question, in TRL's conversational format.

Inputs are rows of exams of one store, and that store. The correct pass is preferred, or the cheaper of two correct
ones: `{"prompt": [...], "chosen": [...], "rejected": [...], "tools": [...]}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from kbgym.agents.llm.export import chat, for_templates
from kbgym.agents.llm.prompting import last_lines, messages, skill_of
from kbgym.api.workspace import Workspace
from kbgym.errors import BadInput
from kbgym.gym.observations import observe
from kbgym.gym.policy import Forward, Turn, View
from kbgym.gym.tools import openai_tools
from kbgym.store import Refused, Store
from kbgym.training.exam import Row, read_rows
from kbgym.training.exam_header import read_header


def preferences(opened: Workspace, exams: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Return every preference pair of these exams, in the order of the first exam's questions."""
    store, system = opened.store, _system(opened)
    for one, other in combinations([_rows_of(file, store) for file in exams], 2):
        for id, row in one.items():
            if id in other and (ranked := _ranked(row, other[id])):
                (question, *chosen), (_, *rejected) = (_trained_on(row, opened)[:-1] for row in ranked)
                said = {"prompt": [system, question], "chosen": chosen, "rejected": rejected}
                yield {**said, "tools": openai_tools("reader")}


def _system(opened: Workspace) -> dict[str, str]:
    return {"role": "system", "content": skill_of("reader", **opened.told).text}


def _rows_of(file: Path, store: Store) -> dict[str, Row]:
    if not file.is_file():
        raise BadInput(f"{file} is no exam: there is no such file.")
    header = read_header(file)
    if header is not None and header.store != store.fingerprint:
        raise BadInput(f"{file} is an exam of another store; name the one it was held on.")
    return {row.id: row for row in read_rows(file) if row.shots}


def _ranked(one: Row, other: Row) -> tuple[Row, Row] | None:
    """Return the better pass first, or None if neither is correct or both are equal."""
    cost = [(row.f1 != 1.0, row.actions) for row in (one, other)]
    if cost[0] == cost[1] or min(cost)[0]:
        return None
    return (one, other) if cost[0] < cost[1] else (other, one)


def _said(row: Row, store: Store) -> list[dict[str, Any]]:
    """Return the question and all following messages."""
    return chat(messages(View("reader", Forward(row.question), _turns(row, store), 0)))


def _trained_on(row: Row, opened: Workspace) -> list[dict[str, Any]]:
    """Return the same messages as a model would receive them, with the actions left after every message it answers."""
    turns, budget = _turns(row, opened.store), opened.settings.forward_budget
    views = (View("reader", Forward(row.question), turns[:taken], budget - taken) for taken in range(len(turns)))
    return for_templates(_said(row, opened.store), {2 * taken: last_lines(view) for taken, view in enumerate(views)})


def _turns(row: Row, store: Store) -> tuple[Turn, ...]:
    try:
        return tuple(Turn(shot.action, observe(shot.result, store.look, row.observations)) for shot in row.shots)
    except (KeyError, Refused):
        raise BadInput(f"the row of question {row.id} names documents this store does not have.") from None
