"""Reading a prompt back: the reference agents behind a chat protocol, seeing nothing but what the request holds.

A request is turned into the view it was made from, and a policy is led through its history. So an exam over a server
that plays this must come out exactly as one without it.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from typing import Any

from turns import turn

from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.gym.actions import Action
from kbgym.gym.policy import Backward, Forward, Policy, Task, Turn, View
from kbgym.gym.tools import parse
from kbgym.index_keys import signature

_DATA = re.compile(r"<observation>\n(.*?)\n</observation>", re.DOTALL)
_ATTEMPT = re.compile(r"^\d+\. (\w+) (\{[^\n]*\})\n<observation>\n(.*?)\n</observation>", re.DOTALL | re.MULTILINE)
_LEFT = re.compile(r"Actions left: (\d+)\.$")


def view_of(body: dict[str, Any]) -> View:
    """The view a request was made from."""
    system, first, *rest = body["messages"]
    role = "reader" if "# Finding answers" in system["content"] else "curator"
    left = _LEFT.search(body["messages"][-1]["content"])
    assert left, "the budget is not the very last line"
    turns: list[Turn] = []
    action: Action | None = None
    for message in rest:
        if message["role"] == "assistant":
            action = _action(message, role)
        elif action is not None:
            found = _DATA.match(message["content"])
            assert found, "an observation is not marked as data"
            turns.append(turn(action, found[1]))
            action = None
    return View(role, _task(first["content"], role), tuple(turns), int(left[1]))


def _action(message: dict[str, Any], role: Any) -> Action | None:
    """The call an assistant's message holds, or nothing for prose: that and its correction are no turn."""
    if calls := message.get("tool_calls"):
        function = calls[0]["function"]
        return parse(function["name"], json.loads(function["arguments"]), role)
    try:
        call = json.loads(message["content"])["call"]
        return parse(call["tool"], call["arguments"], role)
    except (ValueError, KeyError, TypeError):
        return None


def _task(text: str, role: str) -> Task:
    text = text.partition("\n\nActions left:")[0]
    question = text.split("\n", 1)[0].removeprefix("Question: ")
    if role == "reader":
        return Forward(question)
    turns = [turn(parse(m[1], json.loads(m[2]), "reader"), m[3]) for m in _ATTEMPT.finditer(text)]
    golds = re.search(r"^Correct answer: (.*?)(?: \(also accepted: (.*)\))?$", text, re.MULTILINE)
    f1 = re.search(r"Score \(F1\): ([\d.]+)\.", text)
    assert golds and f1
    accepted = (golds[1], *(golds[2].split("; ") if golds[2] else ()))
    verdict = "out of budget" if "ran out" in text else "right" if "answered correctly" in text else "wrong"
    return Backward(question, tuple(turns), accepted, float(f1[1]), verdict)  # type: ignore[arg-type]


class Reference:
    """The reference reader and curator. Policies in the middle of a pass are kept, so that a turn costs one step."""

    def __init__(self, keep: int = 2_000) -> None:
        self._keep = keep
        self._minds: OrderedDict[tuple[Task, tuple[Turn, ...]], Policy] = OrderedDict()

    def __call__(self, body: dict[str, Any]) -> Action | dict[str, Any]:
        if "# Same or not" in body["messages"][0]["content"]:
            return self._verdict(body)
        view = view_of(body)
        before = (view.task, view.history[:-1])
        policy = self._minds.pop(before, None) if view.history else None
        # A request made twice finds its policy gone ahead: then a fresh one is led there again.
        start = len(view.history) if policy else 0
        policy = policy or (ReferenceReader() if view.role == "reader" else ReferenceCurator())
        for number in range(start, len(view.history) + 1):
            past = View(view.role, view.task, view.history[:number], view.remaining + len(view.history) - number)
            action = _now(policy, past)
        self._minds[view.task, view.history] = policy
        if len(self._minds) > self._keep:
            self._minds.popitem(last=False)
        return action

    def _verdict(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the rule's verdict on the two sentences in a judge's request."""
        new, existing = (signature(text) for text in _DATA.findall(body["messages"][1]["content"]))
        return calling(body, [("verdict", json.dumps({"duplicate": new == existing}))])


def _now(policy: Policy, view: View) -> Action:
    """Run a coroutine that never waits."""
    try:
        policy.act(view).send(None)  # type: ignore[attr-defined]
    except StopIteration as end:
        action: Action = end.value
        return action
    raise AssertionError("the policy waits for something")


def calling(body: dict[str, Any], calls: list[tuple[str, str]]) -> dict[str, Any]:
    """An assistant's message with these calls, in the way the request asked for."""
    if "tools" not in body:
        name, arguments = calls[0]
        return {"role": "assistant", "content": f'{{"call":{{"tool":"{name}","arguments":{arguments}}}}}'}
    listed = [
        {"id": f"srv_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}
