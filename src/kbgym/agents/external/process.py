"""An agent's process: its own process group and folder, and termination of the whole group."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

FIRST, LAST = 16_000, 48_000  # bytes of output kept
_POLITE = 1.0  # seconds between SIGTERM and SIGKILL


class AgentProcess:
    """One process. It is terminated when this object is garbage-collected."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="kbgym-pass-"))
        self._printed = Path(self.written("output", ""))
        self._process: asyncio.subprocess.Process | None = None
        self._groups: list[int] = []  # the process group, once there is one
        self._dropped = weakref.finalize(self, _remove, self._folder, self._groups)

    def written(self, name: str, text: str) -> str:
        """Write a file of this pass beside the working folder and return its path."""
        file = self._folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return str(file)

    async def start(self, arguments: Sequence[str], env: Mapping[str, str], given: str | None) -> None:
        """Start the process. The file `given` is its standard input, which is empty without one."""
        work = self._folder / "work"
        work.mkdir(exist_ok=True)
        with open(given or os.devnull, "rb") as told, self._printed.open("wb") as printed:
            self._process = await asyncio.create_subprocess_exec(
                *arguments, stdin=told, stdout=printed, stderr=printed, cwd=work, env=dict(env), start_new_session=True
            )
        self._groups.append(self._process.pid)

    @property
    def started(self) -> bool:
        return self._process is not None

    async def wait(self) -> int:
        """Wait for the process and return its exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def end(self, grace: float = 0.0) -> int:
        """Return the exit code. Terminate the process after `grace` seconds, and its group in any case."""
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), grace)
        if self._process.returncode is None:
            _signal(self._process.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _POLITE)
        _signal(self._process.pid, signal.SIGKILL)
        return await self._process.wait()

    def remove(self) -> None:
        """Remove the working folder, and the token in it."""
        self._dropped()

    @property
    def output(self) -> str:
        """Return the beginning and the end of the output."""
        with self._printed.open("rb") as file:
            first = file.read(FIRST)
            more = os.fstat(file.fileno()).st_size - FIRST
            file.seek(max(FIRST, FIRST + more - LAST))
            middle = b"\n[...]\n" if more > LAST else b""
            return (first + middle + file.read(LAST)).decode(errors="replace")


def _signal(group: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, what)


def _remove(folder: Path, groups: list[int]) -> None:
    for group in groups:
        _signal(group, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
