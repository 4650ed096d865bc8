"""The tools of a served store over MCP, by role.

Listing them needs no store, so that a client is answered while the store is still being opened.
"""

from __future__ import annotations

import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbgym.gym.tools import Role, Tool, tools_of
from kbgym.mcp import ToolResult

if TYPE_CHECKING:
    from kbgym.serving.clients import StoreResults
    from kbgym.serving.learning.learner import Online
    from kbgym.serving.tool_calls import Caller

Opened = tuple["StoreResults", "Online | None", "Caller"]

_TEXTS = tomllib.loads(Path(__file__).with_name("tools.toml").read_text(encoding="utf-8"))
INSTRUCTIONS: str = _TEXTS["instructions"]
TEACH: str = _TEXTS["teaching"]  # for the skill that `kbgym connect --skill` writes
_TOOLS = {name: Tool(name, dict, **described) for name, described in _TEXTS["tools"].items()}
_LESSONS = ("teach", "forget", "undo")


def tools_offered(role: Role, answering: bool) -> tuple[Tool, ...]:
    """Return a role's tools. A session that was asked a question has `answer`, and only the tools of a pass."""
    if answering:
        return tools_of(role)
    of_a_pass = [_TOOLS.get(tool.name, tool) for tool in tools_of(role) if tool.name not in ("answer", "done")]
    more = ("how_sure", *(_LESSONS if role == "curator" else ()))
    return (*of_a_pass, *(_TOOLS[name] for name in more))


class StoreToolbox:
    """The toolbox of one caller; calls wait until the store is `opened`."""

    instructions = INSTRUCTIONS

    def __init__(self, role: Role, answering: bool, opened: Callable[[], Awaitable[Opened]]) -> None:
        self._role, self._answering, self._opened = role, answering, opened

    def tools(self) -> tuple[Tool, ...]:
        return tools_offered(self._role, self._answering)

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        opened = await self._opened()
        from kbgym.serving.tool_calls import call_tool

        return await call_tool(*opened, name, arguments)
