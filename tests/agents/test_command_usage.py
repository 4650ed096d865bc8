"""The usage that a program reports: found by path in its output, summed, and unknown if it reports none."""

from __future__ import annotations

import json

import pytest

from kbgym.agents.external.command_line import READY
from kbgym.agents.external.usage import path_steps, usage_in
from kbgym.errors import BadInput

CLAUDE = {"type": "result", "total_cost_usd": 0.25, "usage": {"input_tokens": 10, "cache_read_input_tokens": 90}}
CODEX = {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 7}}
OPENCODE = {"type": "step_finish", "part": {"cost": 0.5, "tokens": {"input": 3, "output": 4, "cache": {"read": 0}}}}
GEMINI = {"stats": {"models": {"a": {"tokens": {"prompt": 5, "candidates": 6}}, "b": {"tokens": {"prompt": 1}}}}}


def found(path: str, *said: object) -> tuple[int, int, float | None] | None:
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in said)
    usage = usage_in(text, path_steps(path))
    return None if usage is None else (usage.prompt, usage.completion, usage.cost)


def test_ready_made_lines_find_what_their_programs_say() -> None:
    assert found(READY["claude-code"].usage, "a warning", json.dumps(CLAUDE, indent=2)) == (100, 0, 0.25)
    assert found(READY["codex"].usage, {"type": "turn.started"}, CODEX, CODEX) == (200, 14, None)
    assert found(READY["opencode"].usage, OPENCODE, {"part": {"text": "x"}}, OPENCODE) == (6, 8, 1.0)
    assert found(READY["gemini"].usage, f"noise {{\n{json.dumps(GEMINI, indent=2)}\nmore") == (6, 6, None)


def test_paths() -> None:
    assert found("$.a.*", {"a": {"x": 1, "y": 2}}) == found("a.*", {"a": [1, 2]}) == (3, 0, None)
    for path in ("a b", "[x]", "a[0]", "$$"):
        with pytest.raises(BadInput):
            path_steps(path)


@pytest.mark.parametrize(
    "said",
    [
        *(
            "",
            "no JSON",
            "{",
            "[1]",
            '{"usage": 7.5}',
            '{"usage": true}',
            '{"usage": -1}',
            '{"usage": {"cost": "much"}}',
        ),
        *('{"usage": {"cost": NaN}}', '{"usage": 1' + "0" * 30 + "}", '{"usage": ' + "[" * 50_000, '{"a":\n' * 9_000),
    ],
)
def test_what_is_no_count_is_unknown(said: str) -> None:
    assert found("usage", said) is None
