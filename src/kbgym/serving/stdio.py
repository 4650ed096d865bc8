"""MCP over standard input and output for one client.

`initialize` and `tools/list` need no store, so they are answered while it is read and the model loaded; calls wait.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from kbgym.gym.tools import Role
from kbgym.mcp import MOST_MESSAGE, Malformed, RpcRequest, Toolbox, parse_message, progress_of, reply
from kbgym.serving.mcp_tools import Opened, StoreToolbox

if TYPE_CHECKING:
    from kbgym.agents.live import Conversation

_AT_ONCE = 16  # messages in progress
_FIRST = 0.2  # seconds to wait for the client's first message before opening the store
_PROGRESS = 2  # seconds between notifications of progress
_TOO_LONG = b"?"  # not JSON: the reply is an error

T = TypeVar("T")


async def serve_stdio(
    role: Role, answering: bool, opening: Callable[[], Coroutine[Any, Any, Opened]], version: str
) -> None:
    """Serve one client until it disconnects. Raise the error if the store cannot be opened.

    While a thread opens the store nothing is imported here: two threads that import can deadlock.
    """
    greeted = asyncio.Event()
    opened = asyncio.create_task(_after(greeted, opening))
    toolbox = StoreToolbox(role, answering, lambda: asyncio.shield(opened))
    conversing = asyncio.create_task(_converse(toolbox, greeted, version))
    try:
        await asyncio.wait({opened, conversing}, return_when=asyncio.FIRST_EXCEPTION)
        results, online, _ = await opened  # raises an error of the store even if the client has left
        try:
            await conversing
        finally:
            if online is not None:
                await online.stop()
            await results.live.close()
    finally:
        conversing.cancel()


async def play_stdio(conversation: Conversation, work: Callable[[], Coroutine[Any, Any, T]], version: str) -> T | None:
    """Have one client play until it disconnects. Return the result of `work`, or None if the client left before."""
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
    """Run `work` after the first reply, which loading modules would delay."""
    with suppress(TimeoutError):
        await asyncio.wait_for(greeted.wait(), _FIRST)
    return await work()


async def _converse(toolbox: Toolbox, greeted: asyncio.Event, version: str) -> None:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(_AT_ONCE)
    loop, free, writing = asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE), asyncio.Lock()
    # A daemon, because a blocking read cannot be interrupted when the process ends.
    threading.Thread(target=_read, args=(loop, lines), daemon=True).start()

    async def send(body: bytes | None) -> None:
        if body is not None:
            async with writing:
                await asyncio.to_thread(_write, body)

    async def answer(request: RpcRequest) -> None:
        replying, seconds = asyncio.create_task(reply(request, toolbox, version)), 0
        while not (await asyncio.wait({replying}, timeout=_PROGRESS))[0]:
            seconds += _PROGRESS
            await send(progress_of(request, seconds))
        await send(await replying)
        greeted.set()

    async def handle(line: bytes) -> None:
        try:
            if (request := parse_message(line)) is not None:
                await answer(request)
        except Malformed as error:
            await send(error.reply)
        except BrokenPipeError:  # the client has left, and standard input will end too
            pass
        finally:
            free.release()

    async with asyncio.TaskGroup() as group:
        while (line := await lines.get()) is not None:
            await free.acquire()
            group.create_task(handle(line))
    greeted.set()


def _write(line: bytes) -> None:
    data = line + b"\n"
    while data:
        data = data[os.write(1, data) :]


def _read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
    """Put standard input into the queue line by line, without holding a lock that shutdown would wait for."""

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
    except RuntimeError:  # the loop is closed
        pass
