"""Reading of files of any format into statements, with an account of every word.

`serve` is the main function of the child process that `reader_process` starts.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import decode
from kbgym.corpus.blocks import Broken, Page, WordPositions
from kbgym.corpus.fields import read_toml_file, read_yaml_file
from kbgym.corpus.files import MOST_FILE, FoundFile, read_text
from kbgym.corpus.html import fenced, html_to_markdown, html_words, rst_to_html
from kbgym.corpus.markdown import read_markdown
from kbgym.corpus.reader_process import ReadTask, WorkerReply
from kbgym.corpus.records import read_csv, read_json_file, read_jsonl, read_text_file
from kbgym.corpus.statements import Statement, statements
from kbgym.errors import Missing
from kbgym.sanitize import sanitize

MOST_UNPACKED = 512 << 20  # of a zip archive
BATCH = 1_000
MOST_LOOKED_FOR = 200
_LIGATURES = str.maketrans({"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl"})
_RST_LABEL = re.compile(r"^\.\. _([^:\n]{1,200}):[ \t]*$", re.MULTILINE)
_NAMELESS = ("index", "_index", "readme", "default")
_WORD = re.compile(r"[^\W_]+")
_LIST_NUMBER = re.compile(r"^[ \t>]{0,100}\d{1,9}[.)](?=\s)", re.MULTILINE)


def serve() -> None:
    """Read the files named on standard input until it ends."""
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # libraries that print must not disturb the protocol

    def send(reply: WorkerReply) -> None:
        out.write(msgspec.json.encode(reply) + b"\n")
        out.flush()

    for line in sys.stdin.buffer:
        try:
            task = decode(line, ReadTask)
            _limit_memory(task.memory)
            read_file(task, send)
        except Missing as missing:
            send(WorkerReply(ended=True, error=str(missing), missing=True))
        except Broken as broken:
            send(WorkerReply(ended=True, error=str(broken)))
        except MemoryError:
            reason = f"it takes more than {task.memory >> 20:,} MB of memory to read"
            send(WorkerReply(ended=True, error=reason, crashed=True))
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
            send(WorkerReply(ended=True, error=f"it cannot be read: {reason}", crashed=True))


def _limit_memory(most: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not available on every system
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def read_file(task: ReadTask, send: Callable[[WorkerReply], None]) -> None:
    """Send the statements of a file in batches, then its omissions."""
    file = FoundFile(Path(os.fsdecode(task.path)), task.name, task.format, task.size)
    pages, text = _pages(file)
    end, batch, said = WorkerReply(ended=True, size=len(text)), list[Statement](), list[str]()
    names, places = [f"file:{file.name}"], WordPositions(text)  # names of the file's first statement
    for number, page in enumerate(pages):
        title = page.title or fallback_title(file.name)
        found, cut = statements(page, file.name, title, task.language, number, places)
        if found:
            names += [f"title:{page.title.casefold()}"] if page.title else []
            names += [f"address:{address.strip('/')}" for address in page.addresses]
            target = next((one for one in found if one.kind != "field"), found[0])  # of links to the page
            target.first_of, names = (*names,), []
        end.long_sentences += cut
        end.lost += page.lost if text else [pair for pair in page.lost if pair[0]]
        said += [one.prefix + one.own for one in found] if text else ()
        batch += found
        if len(batch) >= BATCH:
            send(WorkerReply(statements=batch, size=len(text)))
            batch = []
    end.statements = batch
    if text:
        end.hidden = 0 if text.isascii() else sanitize(text)[1]
        words = html_words(text) if file.format == "html" else text
        end.lost += [("other", word) for word in missing_words(words, said, [text for _, text in end.lost])]
    send(end)


def _pages(file: FoundFile) -> tuple[Iterable[Page], str]:
    """Return a file's pages, and its text; empty for files read row by row."""
    if file.format in ROW_READERS:
        return ROW_READERS[file.format](file), ""
    text = _office_markdown(file) if file.format == "converted" else read_text(file)
    text = notebook_markdown(text) if file.format == "notebook" else text
    return [TEXT_READERS.get(file.format, read_markdown)(text)], text


def _rst_page(text: str) -> Page:
    """Return the page of a reStructuredText; one that docutils cannot read is read as plain text."""
    try:
        html, lost = rst_to_html(text)
    except (Missing, MemoryError):
        raise
    except Exception:
        return read_text_file(text)
    page = html_page(html)
    page.lost += lost
    page.addresses += _RST_LABEL.findall(text)
    return page


def html_page(text: str) -> Page:
    markdown, title, lost = html_to_markdown(text)
    page = read_markdown(markdown)
    if page.title and title not in ("", page.title):
        page.lost.append(("heading", title))
    page.title = page.title or title
    page.lost += lost
    return page


ROW_READERS: dict[str, Callable[[FoundFile], Iterator[Page]]] = {
    "jsonl": read_jsonl,
    "json": read_json_file,
    "csv": read_csv,
}
TEXT_READERS: dict[str, Callable[[str], Page]] = {  # other texts are Markdown
    "html": html_page,
    "rst": _rst_page,
    "yaml": read_yaml_file,
    "toml": read_toml_file,
    "text": read_text_file,
}


@cache
def _markitdown() -> Any:
    return import_module("markitdown").MarkItDown(enable_plugins=False)


def _office_markdown(file: FoundFile) -> str:
    """Convert a PDF, office file, book or notebook to Markdown."""
    check_archive(file)
    text: str = _markitdown().convert_local(str(file.path)).text_content
    if len(text) > MOST_FILE:
        raise Broken(f"it holds {len(text):,} characters; at most {MOST_FILE:,} are read")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").translate(_LIGATURES)


def notebook_markdown(text: str) -> str:
    """Return the cells of a notebook, and the text they print, as Markdown."""
    try:
        cells = decode(text, _Notebook).cells if text.strip() else []
    except msgspec.DecodeError as error:
        raise Broken(f"no notebook: {error}") from None
    lines: list[str] = []
    for cell in cells:
        if cell.cell_type == "code":
            lines += fenced(_joined(cell.source))
            for output in cell.outputs:
                said = output.text or output.data.get("text/plain", "")
                lines += fenced(_joined(said)) if said else []
        else:
            lines += [*_joined(cell.source).split("\n"), ""]
    return "\n".join(lines) + "\n"


class _Output(msgspec.Struct):
    text: str | list[str] = ""
    data: dict[str, Any] = {}


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str] = ""
    outputs: list[_Output] = []


class _Notebook(msgspec.Struct):
    cells: list[_Cell]


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def check_archive(file: FoundFile) -> None:
    """Raise Broken if a file is not of the format its name says, or is a zip archive that unpacks beyond the limit.

    markitdown detects the format from the content, so a mismatch must be detected here.
    """
    ending, unpacked = file.path.suffix.lower(), 0
    try:
        if ending == ".pdf":
            with file.path.open("rb") as handle:
                if b"%PDF" not in handle.read(1024):
                    raise ValueError
        else:
            with zipfile.ZipFile(file.path) as archive:
                unpacked = sum(one.file_size for one in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError):
        raise Broken(f"no {ending} file") from None
    if unpacked > MOST_UNPACKED:
        raise Broken(f"it unpacks to {unpacked:,} bytes; at most {MOST_UNPACKED:,} are read")


def fallback_title(name: str) -> str:
    """Return a title for a page without one: its file's name, or the folder's for an `index` or `readme`."""
    folder, base = posixpath.split(posixpath.splitext(name)[0])
    if base.lower() in _NAMELESS and folder:
        base = posixpath.basename(folder)
    return re.sub(r"[\s_-]+", " ", base).strip()


def missing_words(text: str, documents: Sequence[str], lost: Sequence[str]) -> list[str]:
    """Return the words of a file that are neither in its documents nor in deliberate omissions of its reader."""
    missing = {word.lower(): word for word in _words(unescape(_LIST_NUMBER.sub("", text)).split("\n"))}
    for word in _words((*documents, *lost)):
        missing.pop(word.lower(), None)
    everything = "\n".join(documents) if missing else ""
    # A word may be part of another one, for example if markup divides it: un*believ*able.
    return [word for number, word in enumerate(missing.values()) if number > MOST_LOOKED_FOR or word not in everything]


def _words(texts: Sequence[str]) -> Iterator[str]:
    """Yield the words of many texts, each once per batch, to bound time and memory."""
    for start in range(0, len(texts), BATCH):
        yield from set(_WORD.findall("\n".join(texts[start : start + BATCH])))
