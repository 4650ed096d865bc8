"""Read a file of any format into statements, and account for every word of it.

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
from kbgym.corpus.blocks import Broken, Page, Step
from kbgym.corpus.fields import field_page, read_toml, read_yaml
from kbgym.corpus.files import MOST_FILE, FoundFile, read_text
from kbgym.corpus.html import html_words, read_html
from kbgym.corpus.markdown import read_markdown
from kbgym.corpus.reader_process import ReadTask, WorkerReply
from kbgym.corpus.records import read_csv, read_json_file, read_jsonl, read_text_file
from kbgym.corpus.rst import rst_to_markdown
from kbgym.corpus.statements import Statement, statements
from kbgym.errors import Missing
from kbgym.sanitize import sanitize

MOST_UNPACKED = 512 << 20  # of a zip archive
BATCH = 1_000
MOST_LOOKED_FOR = 200
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
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def read_file(task: ReadTask, send: Callable[[WorkerReply], None]) -> None:
    """Send the statements of a file in batches, then what is in none of them."""
    file = FoundFile(Path(os.fsdecode(task.path)), task.name, task.format, task.size)
    pages, text = _pages(file, task.keep_code, lambda share: send(WorkerReply(share=share / 2)))
    end, batch, said = WorkerReply(ended=True, size=len(text)), list[Statement](), list[str]()
    names = [f"file:{file.name}"]  # of the file's first statement
    for number, page in enumerate(pages):
        title = page.title or fallback_title(file.name)
        found, cut = statements(
            page, file.name, title, task.language, number, lambda share: send(WorkerReply(share=0.5 + share / 2))
        )
        if found:
            names += [f"title:{page.title.casefold()}"] if page.title else []
            names += [f"address:{address.strip('/')}" for address in page.addresses]
            target = next((one for one in found if one.kind != "field"), found[0])  # of links to the page
            target.first_of, names = (*names,), []
        end.code_blocks += page.code_blocks
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
        end.lost += [("other", word) for word in missing_words(text, said, [text for _, text in end.lost])]
    send(end)


def _pages(file: FoundFile, keep_code: bool, step: Step) -> tuple[Iterable[Page], str]:
    """Return a file's pages and the text whose words must be accounted for; empty for files read row by row."""
    match file.format:
        case "jsonl":
            return read_jsonl(file), ""
        case "csv":
            return read_csv(file), ""
        case "json":
            return read_json_file(file), ""
        case "converted":
            text = _office_markdown(file)
            page = read_markdown(text, keep_code, step)
            for block in page.blocks:  # positions in the Markdown are none in the file
                block.span = (0, file.size)
            return [page], text
    text = read_text(file)
    match file.format:
        case "markdown":
            return [read_markdown(text, keep_code, step)], text
        case "html":
            return [read_html(text, keep_code=keep_code)], html_words(text)
        case "rst":
            return [_rst_page(text, keep_code, step)], text
        case "yaml" | "toml":
            trees, comments = read_yaml(text) if file.format == "yaml" else read_toml(text)
            page = field_page(trees, len(text), (0, len(text)))
            page.lost += [("comment", comment) for comment in comments]
            return [page], text
        case _:
            return [read_text_file(text)], text


def _rst_page(text: str, keep_code: bool, step: Step) -> Page:
    """Return the page of a reStructuredText; one that docutils cannot read is read as plain text."""
    try:
        markdown, lost = rst_to_markdown(text)
    except (Missing, MemoryError):
        raise
    except Exception:
        return read_text_file(text)
    page = read_markdown(markdown, keep_code, step)
    page.lost += lost
    at = 0
    for block in page.blocks:  # the text was rewritten, so a block is looked up in the file by its first words
        words = _WORD.findall(block.text.text[:200])[:4]
        found = re.compile(r"[\W_]{1,200}".join(map(re.escape, words))).search(text, at, at + 50_000) if words else None
        at = found.start() if found else at
        block.span = (at, min(len(text), at + max(1, len(block.text))))
    return page


@cache
def _markitdown() -> Any:
    return import_module("markitdown").MarkItDown(enable_plugins=False)


def _office_markdown(file: FoundFile) -> str:
    """Convert a PDF, office file, book or notebook to Markdown."""
    check_archive(file)
    text: str = _markitdown().convert_local(str(file.path)).text_content
    if len(text) > MOST_FILE:
        raise Broken(f"it holds {len(text):,} characters; at most {MOST_FILE:,} are read")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def check_archive(file: FoundFile) -> None:
    """Raise Broken if a file is not of the format its name says, or a zip archive that unpacks beyond the limit.

    markitdown goes by the content, so a file of another format must be found out here.
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


def fallback_title(name: str) -> str:
    """Return the title of a page that has none: its file's name, or the folder's for an `index` or `readme`."""
    folder, base = posixpath.split(posixpath.splitext(name)[0])
    if base.lower() in _NAMELESS and folder:
        base = posixpath.basename(folder)
    return re.sub(r"[\s_-]+", " ", base).strip()


def missing_words(text: str, documents: Sequence[str], lost: Sequence[str]) -> list[str]:
    """Return the words of a file that are neither in its documents nor in what its reader left out on purpose."""
    missing = {word.lower(): word for word in _words(unescape(_LIST_NUMBER.sub("", text)).split("\n"))}
    for word in _words((*documents, *lost)):
        missing.pop(word.lower(), None)
    everything = "\n".join(documents) if missing else ""
    # A word may also be part of another one, as where markup divided it: un*believ*able.
    return [word for number, word in enumerate(missing.values()) if number > MOST_LOOKED_FOR or word not in everything]


def _words(texts: Sequence[str]) -> Iterator[str]:
    """Yield the words of many texts, each once per batch, which bounds both time and memory."""
    for start in range(0, len(texts), BATCH):
        yield from set(_WORD.findall("\n".join(texts[start : start + BATCH])))
