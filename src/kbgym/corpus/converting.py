"""Other people's readers in a process of their own: docutils for reStructuredText, markitdown for office files and PDF.

What these libraries do with a hostile file nobody here can bound (twenty kilobytes of `a-a-a-` take docutils a minute),
so the process has a limit on its memory and each file one on its time; when either is passed the process is ended, and
the next file gets a new one. It starts with the first such file: other corpora neither need these libraries nor wait
for them.
"""

from __future__ import annotations

import contextlib
import selectors
import subprocess
import sys
import zipfile
from functools import cache
from importlib import import_module
from types import TracebackType
from typing import Any

import msgspec

from kbgym.corpus.blocks import Broken
from kbgym.corpus.files import MOST_FILE, FoundFile
from kbgym.errors import Missing

PATIENCE = 120.0  # seconds an office file may take
MOST_MEMORY = 4 << 30
MOST_UNPACKED = 512 << 20


class Task(msgspec.Struct):
    """A file for markitdown, or a text for docutils."""

    path: str = ""
    text: str = ""


class Converted(msgspec.Struct):
    """Markdown and what is not in it; or what went wrong, and whether a part is not installed."""

    markdown: str = ""
    lost: list[tuple[str, str]] = []
    error: str = ""
    missing: bool = False


class Converter:
    """Has a process that reads what others read better; use it as a context, so that it ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Converter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def office(self, file: FoundFile) -> str:
        """A file as Markdown; Broken if it cannot be converted within the limits."""
        _check_archive(file)
        text = self._ask(Task(path=str(file.path.resolve())), PATIENCE).markdown
        if len(text) > MOST_FILE:
            raise Broken(f"it holds {len(text):,} characters; at most {MOST_FILE:,} are read")
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")

    def restructured(self, text: str) -> Converted | None:
        """reStructuredText as Markdown; nothing where docutils cannot read it, or not in reasonable time."""
        try:
            return self._ask(Task(text=text), 10 + len(text) / 10_000)
        except Broken:
            return None

    def _ask(self, task: Task, patience: float) -> Converted:
        if self._process is None:
            code = f"from kbgym.corpus.converting import serve; serve({MOST_MEMORY})"
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        line = b""
        with contextlib.suppress(OSError), selectors.DefaultSelector() as selector:
            process.stdin.write(msgspec.json.encode(task) + b"\n")
            process.stdin.flush()
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(patience):
                self._end()
                raise Broken(f"it takes more than {patience:.0f} seconds to read")
            line = process.stdout.readline()
        if not line.endswith(b"\n"):
            self._end()
            raise Broken("its reader broke down on it")
        said = msgspec.json.decode(line, type=Converted)
        if said.missing:
            raise Missing(said.error)
        if said.error:
            raise Broken(f"it cannot be read: {said.error}")
        return said

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._process = None


def _check_archive(file: FoundFile) -> None:
    """Office files and books are zip archives; one that unpacks without end is refused before anybody unpacks it.

    markitdown goes by what is in a file, so one that is not what its name says must be found out here.
    """
    ending, unpacked = file.path.suffix.lower(), 0
    try:
        if ending == ".pdf":
            with file.path.open("rb") as handle:
                if b"%PDF" not in handle.read(1024):
                    raise ValueError
        elif ending != ".ipynb":
            with zipfile.ZipFile(file.path) as archive:
                unpacked = sum(one.file_size for one in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError):
        raise Broken(f"no {ending} file") from None
    if unpacked > MOST_UNPACKED:
        raise Broken(f"it unpacks to {unpacked:,} bytes; at most {MOST_UNPACKED:,} are read")


# -- in the other process ---------------------------------------------------------------------------------------------


def serve(most_memory: int) -> None:
    """Answer tasks until there are no more."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most_memory, most_memory))
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # a library that prints must not be heard
    for line in sys.stdin.buffer:
        try:
            said = _answer(msgspec.json.decode(line, type=Task))
        except Missing as missing:
            said = Converted(error=str(missing), missing=True)
        except (Exception, SystemExit, RecursionError, MemoryError) as error:
            said = Converted(error=f"{type(error).__name__}: {' '.join(str(error).split())}"[:200])
        out.write(msgspec.json.encode(said) + b"\n")
        out.flush()


@cache
def _markitdown() -> Any:
    module = import_module("markitdown")
    return module.MarkItDown(enable_plugins=False)


def _answer(task: Task) -> Converted:
    if task.path:
        return Converted(_markitdown().convert_local(task.path).text_content)
    from kbgym.corpus.restructured import rst_to_markdown

    return Converted(*rst_to_markdown(task.text))
