"""Search for the files of a corpus, and bounded reading of them.

Folders are walked in order of their names. Everything skipped is listed with the reason: hidden files, unknown formats,
formats that need a package which is not installed, symbolic links. Anything but a regular file is a problem: opening a
pipe would block.
"""

from __future__ import annotations

import codecs
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import msgspec

from kbgym.corpus.blocks import TABLES, Broken
from kbgym.errors import BadInput, Missing

PROJECT = "kbgym.toml"
RECORDINGS = "cassette.jsonl"  # model recordings kept beside their results; never documents
FORMATS = {ending: format for format, endings in TABLES["formats"].items() for ending in endings.split()}
CONVERTER = "{}: needs markitdown; run: pip install 'kbgym[documents]'"
MOST_FILE = 32 << 20  # a file that is read whole
MOST_ROWS = 2 << 30  # a file that is read row by row
MOST_LINE = 1 << 20  # a row of it


class Problem(msgspec.Struct, frozen=True):
    """A file or folder that is not imported, and why."""

    file: str
    reason: str


class FoundFile(msgspec.Struct, frozen=True):
    """A file to import. `name` is its path below the given folder, from which ids and sources are derived."""

    path: Path
    name: str
    format: str
    size: int


def walk(paths: Sequence[Path], leave_out: Collection[Path] = ()) -> Walk:
    """Find the files of a corpus. Raise BadInput for a missing path or a named file of an unknown format."""
    found = Walk([path.resolve() for path in paths], {path.resolve() for path in leave_out})
    for path, root in zip(paths, found.roots, strict=True):
        if not root.exists():
            raise BadInput(f"there is no file or folder {path}.")
        if root.is_dir():
            found.folder(root, f"{root.name}/" if len(paths) > 1 else "")
        elif root.suffix.lower() not in FORMATS:
            raise BadInput(f"{path} is none of the formats {', '.join(FORMATS)}.")
        elif reason := _unreadable(root):
            raise Missing(f"{path} cannot be read: {reason}")
        elif root not in found.unwanted:
            found.take(root, root.name)
    name, times = Counter(file.name for file in found.files).most_common(1)[0] if found.files else ("", 0)
    if times > 1:
        raise BadInput(f"two of the given paths hold a file {name}; give a folder that holds both.")
    return found


def _unreadable(path: Path) -> str:
    """Return why a file of a known format cannot be read here, or an empty text."""
    ending = path.suffix.lower()
    return CONVERTER.format(ending) if FORMATS[ending] == "converted" and find_spec("markitdown") is None else ""


def _no_document(path: Path) -> str:
    """Return why a file in a folder is not read, or an empty text."""
    if path.name == PROJECT:
        return "the project's settings"
    if path.name.endswith(RECORDINGS):
        return "a recording of a model"
    ending = path.suffix.lower()
    return _unreadable(path) if ending in FORMATS else f"{ending or 'no ending'}: not a format that is read"


class Walk:
    """Everything below the given paths: files to read, problems, and ignored entries."""

    def __init__(self, roots: list[Path], unwanted: Collection[Path]) -> None:
        self.roots, self.unwanted = roots, unwanted
        self.files: list[FoundFile] = []
        self.problems: list[Problem] = []
        self.ignored: list[Problem] = []

    def folder(self, root: Path, prefix: str) -> None:
        """Take all files below a folder."""
        folders = [root]
        while folders:
            here = folders.pop()
            try:
                entries = sorted(here.iterdir(), key=lambda path: path.name)
            except OSError as error:
                self.problems.append(Problem(_shown(here, root, prefix), f"it cannot be read: {error.strerror}"))
                continue
            folders += reversed([path for path in entries if self._entry(path, _shown(path, root, prefix))])

    def _entry(self, path: Path, name: str) -> bool:
        """Take one entry of a folder or note why it is skipped. Return True if it is a folder to descend into."""
        if path.name.startswith("."):
            self.ignored.append(Problem(name, "hidden"))
        elif path.is_symlink():
            self.ignored.append(Problem(name, "a symbolic link; name its target to import it"))
        elif path.is_dir():
            return True
        elif path.resolve() not in self.unwanted:
            if reason := _no_document(path):
                self.ignored.append(Problem(name, reason))
            else:
                self.take(path, name)
        return False

    def take(self, path: Path, name: str) -> None:
        format = FORMATS[path.suffix.lower()]
        limit = MOST_ROWS if format in ("jsonl", "csv") else MOST_FILE
        try:
            status = path.stat()
        except OSError as error:
            self.problems.append(Problem(name, f"it cannot be read: {error.strerror}"))
            return
        if not stat.S_ISREG(status.st_mode):
            self.problems.append(Problem(name, "no regular file"))
        elif status.st_size > limit:
            reason = f"{status.st_size:,} bytes are too many; at most {limit:,} are read"
            self.problems.append(Problem(name, reason))
        else:
            self.files.append(FoundFile(path, name, format, status.st_size))


def _shown(path: Path, root: Path, prefix: str) -> str:
    name = prefix + path.relative_to(root).as_posix()
    return name.encode("utf-8", "replace").decode()  # a name that is not Unicode can still be shown


_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset=["']?([\w-]{1,40})""", re.IGNORECASE)


def read_text(file: FoundFile) -> str:
    """Return a whole file as text with one-character line ends: UTF-8, or the encoding that a BOM or HTML declares."""
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
        name = encoding.removesuffix("-sig").upper()
        hint = "if it is Latin-1, convert it: iconv -f latin1 -t utf-8"
        raise Broken(f"not {name} text: byte {error.start:,} fits nothing; {hint}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_rows(file: FoundFile) -> Iterator[tuple[int, str]]:
    """Yield the offset and text of each line of a file; the length of a line is bounded."""
    place = 0
    try:
        with file.path.open("rb") as handle:
            for number, data in enumerate(iter(partial(handle.readline, MOST_LINE + 1), b""), 1):
                if len(data) > MOST_LINE:
                    raise Broken(f"line {number:,} has more than {MOST_LINE:,} bytes")
                if b"\0" in data:
                    raise Broken("a binary file: it holds a zero byte")
                line = data.decode("utf-8-sig" if number == 1 else "utf-8").replace("\r\n", "\n")
                yield place, line
                place += len(line)
    except UnicodeDecodeError:
        raise Broken(f"not UTF-8 text: line {number:,}") from None
    except OSError as error:
        raise Broken(f"it cannot be read: {error.strerror}") from error
