"""MCP over standard input and output for one client: who it is is asked at once, the store is opened behind that.

`initialize` and `tools/list` need no store, so they are answered while it is read and the model loaded; a call waits.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from kbgym.gym.tools import Role, Tool
from kbgym.mcp import MOST_MESSAGE, Toolbox, ToolResult, answered
from kbgym.serving.mcp_offer import INSTRUCTIONS, prompt_offered, prompts_offered, resources_offered, tools_offered

if TYPE_CHECKING:
    from kbgym.agents.conversation import Conversation
    from kbgym.serving.calling import Caller
    from kbgym.serving.learning.learner import Online
    from kbgym.trace.live import LiveStore

_AT_ONCE = 16  # messages read and not answered yet
_FIRST = 0.2  # seconds a client is waited for before the store is opened all the same
_TOO_LONG = b"?"  # no JSON: answered as such

T = TypeVar("T")
Opened = tuple["LiveStore", "Online | None", "Caller"]


class LateTools:
    """The tools of a store that may still be being opened."""

    instructions = INSTRUCTIONS

    def __init__(self, role: Role, answering: bool, curates: bool, opening: asyncio.Task[Opened]) -> None:
        self._role, self._answering, self._curates, self._opening = role, answering, curates, opening
        self.texts = self

    def tools(self) -> tuple[Tool, ...]:
        return tools_offered(self._role, self._answering, self._curates)

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        opened = await asyncio.shield(self._opening)
        from kbgym.serving.calling import call_tool

        return await call_tool(*opened, name, arguments)

    def prompts(self) -> dict[str, str]:
        return prompts_offered(self._role)

    def prompt(self, name: str) -> str | None:
        return prompt_offered(self._role, name)

    def resources(self) -> dict[str, str]:
        return resources_offered(self._role, self._answering)

    async def resource(self, uri: str) -> str | None:
        live, online, caller = await asyncio.shield(self._opening)
        from kbgym.serving.provenance import resource

        return await resource(live, online, caller.role, self._answering, uri)


async def serve_stdio(
    role: Role, answering: bool, curates: bool, opening: Callable[[], Coroutine[Any, Any, Opened]], version: str
) -> None:
    """Answer one client until it hangs up. A store that cannot be opened ends it, with the error.

    While a thread opens the store nothing is imported here: two threads that import can wait for each other.
    """
    greeted = asyncio.Event()
    opened = asyncio.create_task(_after(greeted, opening))
    conversing = asyncio.create_task(_converse(LateTools(role, answering, curates, opened), greeted, version))
    try:
        await asyncio.wait({opened, conversing}, return_when=asyncio.FIRST_EXCEPTION)
        live, online, _ = await opened  # what is wrong with a store is said also to a client that left at once
        try:
            await conversing
        finally:
            if online is not None:
                await online.stop()
            await live.close()
    finally:
        conversing.cancel()


async def play_stdio(conversation: Conversation, work: Callable[[], Coroutine[Any, Any, T]], version: str) -> T | None:
    """Have one client play until it hangs up; what the work comes to, None where the client left before its end."""
    greeted = asyncio.Event()
    working = asyncio.create_task(_after(greeted, work))
    conversing = asyncio.create_task(_converse(conversation, greeted, version))
    try:
        await asyncio.wait({working, conversing}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
            return None
        result = await working
        conversation.finish("There is no question left. Thank you.")
        await conversing
        return result
    finally:
        conversing.cancel()


async def _after(greeted: asyncio.Event, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The client is answered first: what is loaded meanwhile would hold that up."""
    with suppress(TimeoutError):
        await asyncio.wait_for(greeted.wait(), _FIRST)
    return await work()


async def _converse(toolbox: Toolbox, greeted: asyncio.Event, version: str) -> None:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(_AT_ONCE)
    loop, free, writing = asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE), asyncio.Lock()
    # A daemon: nothing can wake it while the client says nothing, and the process may have to end.
    threading.Thread(target=_read, args=(loop, lines), daemon=True).start()

    async def reply(line: bytes) -> None:
        try:
            said = await answered(line, toolbox, version)
            if said is not None:
                async with writing:
                    await asyncio.to_thread(_write, said)
                greeted.set()
        except BrokenPipeError:  # the client is gone, and standard input will end too
            pass
        finally:
            free.release()

    async with asyncio.TaskGroup() as group:
        while (line := await lines.get()) is not None:
            await free.acquire()
            group.create_task(reply(line))
    greeted.set()


def _write(said: bytes) -> None:
    data = said + b"\n"
    while data:
        data = data[os.write(1, data) :]


def _read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
    """Hand over standard input line by line; it holds no lock of Python's that the end would wait for."""

    def hand(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    rest, skipping = b"", False
    try:
        while data := os.read(0, 1 << 16):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                if not skipping and line.strip():
                    hand(line)
                skipping = False
            if len(rest) > MOST_MESSAGE:
                if not skipping:
                    hand(_TOO_LONG)
                rest, skipping = b"", True
        hand(None)
    except RuntimeError:  # the loop is over
        pass
