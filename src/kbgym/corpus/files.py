"""Which files a corpus has, and reading them without trusting them: bounded, decoded, named when something is wrong.

Folders are walked in the order of their names. Hidden files and folders are left out. A symbolic link to something that
is imported anyway is passed over; one that leads back to a folder it stands in is a problem, as is anything that is no
regular file: opening a pipe would wait for ever.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from kbgym.corpus.blocks import Broken
from kbgym.errors import BadInput

RECORDINGS = "cassette.jsonl"  # what models said, kept beside what was made of it; never somebody's documents
FORMATS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
}
MOST_FILE = 32 << 20  # a file that is read whole
MOST_ROWS = 2 << 30  # a file that is read row by row
MOST_LINE = 1 << 20  # a row of it


class Problem(msgspec.Struct, frozen=True):
    """A file or folder that is not imported, and why."""

    file: str
    reason: str


class FoundFile(msgspec.Struct, frozen=True):
    """A file to import. `name` is its path below the folder that was given: what ids and sources are made of."""

    path: Path
    name: str
    format: str
    size: int


class Walk(msgspec.Struct):
    """Everything below the given paths."""

    files: list[FoundFile] = []
    problems: list[Problem] = []
    ignored: int = 0


def walk(paths: Sequence[Path], leave_out: Collection[Path] = ()) -> Walk:
    """The files of a corpus. A path that is not there, or a file of no known format that was named, is bad input."""
    found = Walk()
    roots = [path.resolve() for path in paths]
    unwanted = {path.resolve() for path in leave_out}
    for path, root in zip(paths, roots, strict=True):
        prefix = f"{root.name}/" if len(roots) > 1 and root.is_dir() else ""
        if not root.exists():
            raise BadInput(f"there is no file or folder {path}.")
        if root.is_dir():
            _walk_folder(root, root, prefix, found, roots, unwanted)
        elif root.suffix.lower() not in FORMATS:
            raise BadInput(f"{path} is none of the formats {', '.join(FORMATS)}.")
        elif root not in unwanted:
            _take(root, root.name, found)
    names = [file.name for file in found.files]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"two of the given paths hold a file {twice}; give a folder that holds both.")
    return found


def _walk_folder(
    folder: Path, root: Path, prefix: str, found: Walk, roots: list[Path], unwanted: Collection[Path]
) -> None:
    folders = [folder]
    while folders:
        here = folders.pop()
        below: list[Path] = []
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError as error:
            found.problems.append(Problem(_shown(here, root, prefix), f"the folder cannot be read: {error.strerror}"))
            continue
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                target = _target(path, root, prefix, found)
                if target is None or any(target.is_relative_to(place) for place in roots):
                    continue  # a problem by now, or imported at its own place
            if entry.is_dir():
                below.append(path)
            elif path.suffix.lower() not in FORMATS or path.name.endswith(RECORDINGS):
                found.ignored += 1
            elif path.resolve() not in unwanted:
                _take(path, _shown(path, root, prefix), found)
        folders += reversed(below)


def _target(link: Path, root: Path, prefix: str, found: Walk) -> Path | None:
    """Where a symbolic link leads, unless it leads nowhere or in a circle."""
    name = _shown(link, root, prefix)
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        found.problems.append(Problem(name, "a symbolic link that leads nowhere or in a circle"))
        return None
    if link.parent.resolve().is_relative_to(target):
        found.problems.append(Problem(name, "a symbolic link back to a folder it stands in"))
        return None
    return target


def _shown(path: Path, root: Path, prefix: str) -> str:
    name = prefix + path.relative_to(root).as_posix()
    return name.encode("utf-8", "replace").decode()  # a name that is not Unicode is still shown


def _take(path: Path, name: str, found: Walk) -> None:
    try:
        status = path.stat()
    except OSError as error:
        found.problems.append(Problem(name, f"it cannot be read: {error.strerror}"))
        return
    format = FORMATS[path.suffix.lower()]
    limit = MOST_ROWS if format in ("jsonl", "csv") else MOST_FILE
    if not stat.S_ISREG(status.st_mode):
        found.problems.append(Problem(name, "no regular file"))
    elif status.st_size > limit:
        found.problems.append(Problem(name, f"{status.st_size:,} bytes are too many; at most {limit:,} are read"))
    else:
        found.files.append(FoundFile(path, name, format, status.st_size))


_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset=["']?([\w-]{1,40})""", re.IGNORECASE)


def read_text(file: FoundFile) -> str:
    """A whole file as text with `\\n` line ends. UTF-8, unless it begins with a UTF-16 mark or, as HTML, says so."""
    try:
        with file.path.open("rb") as handle:
            data = handle.read(MOST_FILE + 1)
    except OSError as error:
        raise Broken(f"it cannot be read: {error.strerror}") from error
    if len(data) > MOST_FILE:
        raise Broken(f"more than {MOST_FILE:,} bytes")
    encoding = "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif file.format == "html" and (said := _CHARSET.search(data[:2048])):
        western = said[1].lower() in (b"iso-8859-1", b"latin1", b"windows-1252", b"cp1252")
        encoding = "cp1252" if western else encoding
    if encoding != "utf-16" and b"\0" in data:
        raise Broken("a binary file: it holds a zero byte")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Broken(f"not {encoding.removesuffix('-sig').upper()} text: byte {error.start:,} fits nothing") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_rows(file: FoundFile) -> Iterator[tuple[int, str]]:
    """The lines of a file with the place each starts at, a bounded one at a time. Empty lines are given too."""
    place = 0
    try:
        with file.path.open("rb") as handle:
            number = 0
            while data := handle.readline(MOST_LINE + 1):
                number += 1
                if len(data) > MOST_LINE:
                    raise Broken(f"line {number:,} has more than {MOST_LINE:,} bytes")
                if b"\0" in data:
                    raise Broken("a binary file: it holds a zero byte")
                try:
                    line = data.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    raise Broken(f"not UTF-8 text: line {number:,}") from None
                line = line.replace("\r\n", "\n")
                yield place, line
                place += len(line)
    except OSError as error:
        raise Broken(f"it cannot be read: {error.strerror}") from error
