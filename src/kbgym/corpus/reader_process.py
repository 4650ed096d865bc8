"""A child process that reads files with limits on time, memory and output.

Files are untrusted, and a parser cannot be bounded from within: a few hundred bytes of substitutions keep docutils busy
for minutes, and a deep TOML key takes gigabytes. Every format is therefore read by a child process (`reading.serve`),
one file after the other. If a file exceeds a limit, the process is killed, the file is refused, and a new process reads
the rest.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from kbgym.canonical import decode
from kbgym.corpus.files import FoundFile
from kbgym.corpus.statements import Statement
from kbgym.errors import Missing

SECONDS, BYTES_PER_SECOND = 18.0, 20_000  # time limit per file: 18 s, and 1 s per 20 kB
MEMORY, MEMORY_PER_BYTE, MOST_MEMORY = 768 << 20, 64, 4 << 30
OUTPUT, OUTPUT_PER_BYTE = 256 << 10, 64  # total characters of a file's documents


class ReadTask(msgspec.Struct, frozen=True):
    """A file to read, and the memory limit while it is read."""

    path: bytes
    name: str
    format: str
    size: int
    language: str = "en"
    memory: int = MOST_MEMORY


class WorkerReply(msgspec.Struct, omit_defaults=True):
    """A message from the reader process: a batch of statements, or the end of the file; or all of a file's messages.

    `lost` lists omissions as pairs of kind and text; `hidden` counts invisible characters; `size` is the
    input the output is compared with. A file that cannot be read ends with `error`: it is malformed, needs a package
    that is not installed (`missing`), or made its parser fail (`crashed`).
    """

    statements: list[Statement] = []
    ended: bool = False
    lost: list[tuple[str, str]] = []
    hidden: int = 0
    long_sentences: int = 0
    size: int = 0
    error: str = ""
    missing: bool = False
    crashed: bool = False


class ReaderProcess:
    """A child process that reads files one after the other; it is started on demand and ends with this process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def read(self, files: Sequence[FoundFile], language: str) -> Iterator[WorkerReply]:
        """Yield the contents of each file, in order; one that is refused has an error.

        Raises:
            Missing: If reading a format needs a package that is not installed.
        """
        with self._lock:
            for file in files:
                process = self.start()
                with contextlib.suppress(OSError):  # the process died; reading its replies detects that
                    _send(process, file, language)
                reply = _receive(process, file)
                if reply.crashed:  # memory may be exhausted, or replies left in the pipe
                    self.close()
                if reply.missing:
                    raise Missing(reply.error)
                yield reply

    def start(self) -> subprocess.Popen[bytes]:
        """Return the process, started if there is none."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", "from kbgym.corpus.reading import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(OSError, ValueError):
                self._process.communicate()
            self._process = None


@cache
def reader_process() -> ReaderProcess:
    """Return the reader that all imports of this process share."""
    reader = ReaderProcess()
    atexit.register(reader.close)
    return reader


def _send(process: subprocess.Popen[bytes], file: FoundFile, language: str) -> None:
    memory = MOST_MEMORY if file.format == "converted" else min(MOST_MEMORY, MEMORY + MEMORY_PER_BYTE * file.size)
    path = os.fsencode(file.path.resolve())
    task = ReadTask(path, file.name, file.format, file.size, language, memory)
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(task) + b"\n")
    process.stdin.flush()


def _receive(process: subprocess.Popen[bytes], file: FoundFile) -> WorkerReply:
    """Return everything read from a file, with an error if the file exceeds a limit."""
    assert process.stdout is not None
    found, characters = list[Statement](), 0
    began, seconds = time.monotonic(), SECONDS + file.size / BYTES_PER_SECOND
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        while (line := process.stdout.readline()).endswith(b"\n"):
            reply = decode(line, WorkerReply)
            found += reply.statements
            characters += sum(len(one.prefix) + len(one.own) for one in reply.statements)
            if characters > OUTPUT + OUTPUT_PER_BYTE * max(file.size, reply.size):
                return WorkerReply(error=f"it unfolds to more than {OUTPUT_PER_BYTE} times its size", crashed=True)
            if reply.ended:
                reply.statements = found
                return reply
    finally:
        timer.cancel()
    late = time.monotonic() - began >= seconds
    error = f"it takes more than {seconds:.0f} seconds to read" if late else "its reader broke down"
    return WorkerReply(error=error, crashed=True)
