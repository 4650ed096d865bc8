"""A call of a tool by whoever plays over MCP, from when it is made until the pass has an answer to it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from kbgym.mcp import ToolResult


class AskedCall(msgspec.Struct, eq=False):
    """A call, and where its result is waited for."""

    name: str
    arguments: dict[str, Any]
    result: asyncio.Future[ToolResult]

    @classmethod
    def of(cls, name: str, arguments: dict[str, Any]) -> AskedCall:
        return cls(name, arguments, asyncio.get_running_loop().create_future())

    def answer(self, text: str, wrong: bool = False) -> None:
        if not self.result.done():
            self.result.set_result(ToolResult(text, wrong))
