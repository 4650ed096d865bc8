"""Usage that a program reports, read from its JSON output by a dotted path; unreported values are unknown.

A path is names joined by dots, with `$` for the root and `*` for every member: `$.usage`, `part.tokens`,
`stats.models.*.tokens`. It leads to an object of counts under the names that agents use, or to a number of tokens.
Every JSON object that begins a line of the output is looked at, and what is found is added up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kbgym.agents.llm.values import Usage
from kbgym.errors import BadInput

_PATH = re.compile(r"[\w-]+|\*")
_PROMPT = ("input_tokens", "prompt_tokens", "input", "prompt")
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")  # reported separately from the input tokens
_COMPLETION = ("output_tokens", "completion_tokens", "output", "candidates")
_COST = ("total_cost_usd", "cost_usd", "cost")
_MOST = 10**12
_MOST_FAILED = 500  # looks like an object but is not valid JSON


def path_steps(path: str) -> tuple[str, ...]:
    """Return the names of a path."""
    steps = tuple(step for step in path.strip().removeprefix("$").removeprefix(".").split(".") if step)
    if not all(map(_PATH.fullmatch, steps)):
        raise BadInput(f"usage_from takes a path such as $.usage or stats.models.*.tokens, not {path!r}.")
    return steps


def usage_in(output: str, steps: tuple[str, ...]) -> Usage | None:
    """Return the usage that an output reports, or None."""
    found = [usage for value in _objects(output) for at in _at(value, steps) if (usage := _usage(at)) is not None]
    return sum(found[1:], found[0]) if found else None


def _objects(output: str) -> Iterator[Any]:
    """Yield the JSON objects of a text, on one line or over several."""
    decoder, end, failed = json.JSONDecoder(), 0, 0
    for begin in re.finditer(r"^\s*\{", output, re.MULTILINE):
        if begin.end() <= end or failed > _MOST_FAILED:
            continue
        try:
            value, end = decoder.raw_decode(output, begin.end() - 1)
        except (ValueError, RecursionError):
            failed += 1
            continue
        yield value


def _at(value: Any, steps: tuple[str, ...]) -> list[Any]:
    """Return what a path leads to from a value."""
    if not steps:
        return [value]
    if steps[0] == "*" and isinstance(value, list):
        members = value
    elif isinstance(value, dict):
        members = [member for name, member in value.items() if steps[0] in ("*", name)]
    else:
        return []
    return [end for member in members for end in _at(member, steps[1:])]


def _usage(value: Any) -> Usage | None:
    if (number := _count(value)) is not None:
        return Usage(requests=1, prompt=number, cost=None)
    if not isinstance(value, dict):
        return None
    told: dict[str, Any] = dict(value)
    for name in ("usage", "tokens"):
        if isinstance(inside := value.get(name), dict):
            told |= inside
    prompt, completion = _first(told, _PROMPT), _first(told, _COMPLETION)
    cost = _first(told, _COST, int | float)
    if prompt is None and completion is None and cost is None:
        return None
    beside = sum(_count(told.get(name)) or 0 for name in _BESIDE)
    return Usage(requests=1, prompt=(prompt or 0) + beside, completion=completion or 0, cost=cost)


def _first(told: dict[str, Any], names: tuple[str, ...], kind: Any = int) -> Any:
    return next((number for name in names if (number := _count(told.get(name), kind)) is not None), None)


def _count(value: Any, kind: Any = int) -> Any:
    """Return a number that can be a count or an amount, else None."""
    return value if isinstance(value, kind) and not isinstance(value, bool) and 0 <= value < _MOST else None
