"""Ids of documents, and resolution of the links between files into links between documents."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from kbgym.corpus.passages import DraftDocument

_OTHER_SITE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")
_ENDINGS = ("", ".md", ".html", ".rst", ".markdown", "/index.md", "/index.html", "/README.md", "/index.rst")


def document_id(file: str, own: str, ordinal: int = 0) -> str:
    """Return an id derived from the file and the text, which is stable when the text moves in its file."""
    said = hashlib.sha256(f"{file}\0{own}\0{ordinal or ''}".encode()).hexdigest()
    return f"{_slug(file)}-{said[:10]}"


@lru_cache(64)
def _slug(file: str) -> str:
    stem = posixpath.splitext(posixpath.basename(file))[0]
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:24].rstrip("-") or "file"


def make_ids(drafts: Sequence[DraftDocument]) -> list[str]:
    """Return a unique id for every draft."""
    ids: dict[str, None] = {}
    repeats: Counter[tuple[str, str]] = Counter()
    for one in drafts:
        said = (one.source.file, one.own)
        while (id := document_id(*said, repeats[said])) in ids:
            repeats[said] += 1
        ids[id] = None
    return list(ids)


class LinkResolver:
    """Resolves a link target to the first document of the page.

    `site` is the URL at which the pages are published: links to it are links between them. A page is found by its file,
    by the address in its front matter, or by a label in it.
    """

    def __init__(self, drafts: Sequence[DraftDocument], ids: Sequence[str], site: str = "") -> None:
        self._site = re.sub(r"^[a-zA-Z]+://", "", site).strip("/")
        self._first: dict[str, str] = {}
        for id, one in zip(ids, drafts, strict=True):
            for name in one.first_of:
                self._first.setdefault(name, id)
        for name, id in list(self._first.items()):  # a wiki link may name a file without its extension
            if name.startswith("file:"):
                stem = posixpath.splitext(name.removeprefix("file:"))[0].casefold()
                self._first.setdefault(f"title:{stem}", id)
                self._first.setdefault(f"title:{posixpath.basename(stem)}", id)

    def links(self, draft: DraftDocument, id: str) -> tuple[tuple[str, ...], int]:
        """Return the documents that a draft links to, and the number of its links to missing pages."""
        targets: dict[str, None] = {}
        dead = 0
        for name in draft.names:
            target = self.resolve(name, draft.source.file)
            if target is None:
                dead += 1
            elif target and target != id:
                targets[target] = None
        return tuple(targets), dead

    def resolve(self, name: str, file: str) -> str | None:
        """Return the document a link leads to: empty for another site or the same page, None if it is missing."""
        if name.startswith("[["):
            page = name.removeprefix("[[").partition("#")[0].strip().casefold()
            return self._first.get(f"title:{page}") if page else ""
        path = name.partition("#")[0].partition("?")[0]
        published = re.sub(r"^(?:https?:)?//", "", path)
        if self._site and (published == self._site or published.startswith(f"{self._site}/")):
            return self._published(published.removeprefix(self._site).strip("/"))
        if not path or _OTHER_SITE.match(path):
            return ""
        if path[0] == "/":
            return self._published(path.strip("/"))
        return self._file(posixpath.normpath(posixpath.join(posixpath.dirname(file), path)))

    def _published(self, path: str) -> str | None:
        """Return a page by its address below the site or the imported folder."""
        return self._first.get(f"address:{path}") or self._file(posixpath.normpath(path) if path else "")

    def _file(self, place: str) -> str | None:
        stem = re.sub(r"\.html?$", "", place)
        candidates = [f"{base}{ending}".lstrip("/") for base in dict.fromkeys((place, stem)) for ending in _ENDINGS]
        return next((self._first[f"file:{one}"] for one in candidates if f"file:{one}" in self._first), None)
