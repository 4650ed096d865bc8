"""Chat transcripts as ATIF trajectories (Agent Trajectory Interchange Format), as Harbor and others read them.

Written as version 1.6 with nothing that came later, so that readers of that and of newer versions take it. It knows
messages of OpenAI's protocol and nothing of who played.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from kbgym.canonical import decode

VERSION = "ATIF-v1.6"


class AtifAgent(NamedTuple):
    """Who played: kbgym's version, and the reader's or model's name."""

    version: str
    model: str


def trajectory(
    said: Iterable[dict[str, Any]], tools: Sequence[dict[str, Any]], session: str, agent: AtifAgent, **extra: Any
) -> dict[str, Any]:
    """One pass: a step for the system's and the user's message, then one for every call with what came back."""
    steps: list[dict[str, Any]] = []
    for message in said:
        if message["role"] == "tool":
            shown = {"source_call_id": message["tool_call_id"], "content": message["content"]}
            steps[-1]["observation"] = {"results": [shown]}
        else:
            source = "agent" if message["role"] == "assistant" else message["role"]
            step = {"step_id": len(steps) + 1, "source": source, "message": message.get("content") or ""}
            steps.append(
                step | ({"tool_calls": calls} if (calls := list(map(_call, message.get("tool_calls", ())))) else {})
            )
    who = {"name": "kbgym", "version": agent.version, "model_name": agent.model, "tool_definitions": list(tools)}
    found = {"schema_version": VERSION, "session_id": session, "agent": who, "steps": steps}
    return {**found, "final_metrics": {"total_steps": len(steps)}, **({"extra": extra} if extra else {})}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    """A call; arguments that are no JSON object stand in one as they were written."""
    asked = call["function"]
    try:
        arguments = decode(asked["arguments"], dict[str, Any])
    except msgspec.DecodeError:
        arguments = {"arguments": asked["arguments"]}
    return {"tool_call_id": call["id"], "function_name": asked["name"], "arguments": arguments}
