"""Folders a stranger might send: every name and text in them tries to be more than a name or a text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from experiments import small_experiment

SCRIPT = "<script>window.broken = 1</script>"
EVERY = (
    SCRIPT,
    '"><img src="x" onerror="window.broken = 2">',
    "'><svg onload='window.broken = 3'></svg>",
    "</style></title><iframe src='javascript:parent.broken=4'></iframe>",
    "--><script>window.broken = 5</script><!--",
    "]]><script>window.broken = 6</script>",
    "$\\frac{1}{$ `<b>code</b>`",
    "javascript:window.broken=7",
    "\x1b[2J\u202ereversed\u200b",
)
ALL = " ".join(EVERY)


def hostile_experiment(place: Path) -> Path:
    """An experiment with hostile labels, agents, classes, templates, questions, answers, worlds and reasons."""
    small_experiment(place)
    _json(place / "experiment.json", _training)
    for run in place.glob("seed-*/trained-*/run.json"):
        _json(run, lambda value: value["settings"].update(reader=ALL, curator=ALL))
    for note in place.glob("seed-*/arms/*.json"):
        _json(note, lambda value: value.update(label=ALL, notes={ALL: ALL}))
    for world in [*place.glob("seed-*/world/world.json"), *place.glob("seed-*/trained-*/world/world.json")]:
        _json(world, lambda value: value.update({"kind": ALL, ALL: ALL}))
    for rows in place.glob("seed-*/exams/*.jsonl"):
        _lines(rows, _row)
    return place


def _training(value: dict[str, Any]) -> None:
    for number, training in enumerate(value["trainings"]):
        training["label"] = f"{number} {ALL}"
        training["settings"].update(reader=ALL, curator=ALL)


def _row(value: dict[str, Any]) -> None:
    digits = re.sub(r"\D", "", value["id"])
    value["class"] = EVERY[len(digits) % len(EVERY)]
    value["template"] = value["question"] = value["answer"] = ALL
    value["golds"] = [ALL]


def _json(path: Path, change: Any) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")


def _lines(path: Path, change: Any) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        change(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
