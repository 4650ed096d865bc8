"""An agent's process: in a group and a folder of its own, its output kept to a bound, ended with its children.

On Linux a keeper stands above it, so that children which left the group are ended too (`supervisor.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from kbgym.errors import BadInput

FIRST, LAST = 16_000, 48_000  # bytes of output that are kept
_KEPT = sys.platform == "linux"  # elsewhere what leaves the process group gets away
_KEEPER = str(Path(__file__).with_name("supervisor.py"))
_POLITE = 5.0 if _KEPT else 1.0  # seconds between being asked to end and being ended; a keeper has one of its own
_DRAINED = 0.5  # seconds its output is waited for when it is over: a child may hold it open


class AgentProcess:
    """One process. Whoever drops it without ending it ends it too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._first, self._last, self._cut = b"", b"", False
        self._process: asyncio.subprocess.Process | None = None
        self._draining: asyncio.Task[None] | None = None
        self._dropped = weakref.finalize(self, _remove, folder, None)

    @classmethod
    def in_new_folder(cls) -> AgentProcess:
        return cls(Path(tempfile.mkdtemp(prefix="kbgym-pass-")))

    def written(self, name: str, text: str) -> str:
        """The path of a file of this pass, beside the working folder."""
        file = self._folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return str(file)

    async def start(self, arguments: Sequence[str], env: Mapping[str, str], given: str | None) -> None:
        """The file `given` is its standard input, which is empty without one."""
        work = self._folder / "work"
        work.mkdir(exist_ok=True)
        # A pipe of our own: asyncio's would have us wait for every child that holds it open.
        (reading, writing), (heard, report) = os.pipe(), os.pipe()
        kept = [sys.executable, "-I", "-S", _KEEPER, str(report), *arguments] if _KEPT else arguments
        try:
            with open(given or os.devnull, "rb") as told:
                process = await asyncio.create_subprocess_exec(
                    *kept,
                    stdin=told,
                    stdout=writing,
                    stderr=writing,
                    cwd=work,
                    env=dict(env),
                    start_new_session=True,
                    pass_fds=(report,) if _KEPT else (),
                )
        except BaseException:
            os.close(reading)
            os.close(heard)
            raise
        finally:
            os.close(writing)
            os.close(report)
        self._process = process
        self._dropped.detach()
        self._dropped = weakref.finalize(self, _remove, self._folder, process.pid)
        self._draining = asyncio.create_task(self._drain(reading))
        with os.fdopen(heard, "rb") as said:
            if number := await asyncio.to_thread(said.read, 20):
                raise OSError(int(number), os.strerror(int(number)))

    @property
    def started(self) -> bool:
        return self._process is not None

    async def wait(self) -> int:
        """Its exit code, when it is over."""
        assert self._process is not None
        return await self._process.wait()

    async def end(self, grace: float = 0.0) -> int:
        """Its exit code. It has so many seconds to end by itself; then it is ended, and its group in any case."""
        assert self._process is not None and self._draining is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), grace)
        if self._process.returncode is None:
            _ask_to_end(self._process.pid)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _POLITE)
        _signal(self._process.pid, signal.SIGKILL)
        code = await self._process.wait()
        await asyncio.wait({self._draining}, timeout=_DRAINED)
        self._draining.cancel()
        return code

    def remove(self) -> None:
        """Its folder goes, and with it the token."""
        self._dropped()

    @property
    def output(self) -> str:
        """What it printed: the beginning and the end."""
        middle = b"\n[...]\n" if self._cut else b""
        return (self._first + middle + self._last).decode(errors="replace")

    async def _drain(self, reading: int) -> None:
        printed = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        file = os.fdopen(reading, "rb", 0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(printed), file)
        try:
            while data := await printed.read(1 << 16):
                room = FIRST - len(self._first)
                self._first, more = self._first + data[:room], self._last + data[room:]
                self._last, self._cut = more[-LAST:], self._cut or len(more) > LAST
        finally:
            transport.close()


def _signal(group: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, what)


def _ask_to_end(group: int) -> None:
    """A keeper ends everything below it, which must not be done to itself before."""
    if not _KEPT:
        _signal(group, signal.SIGTERM)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(group, signal.SIGTERM)


def _remove(folder: Path, group: int | None) -> None:
    if group is not None:
        _ask_to_end(group) if _KEPT else _signal(group, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def check_found(program: str, env: Mapping[str, str]) -> None:
    if shutil.which(program, path=env.get("PATH")) is None:
        raise BadInput(f"the agent's command cannot be started: there is no program {program!r}.")
