"""The page's static files, read into memory once; requests must match a file by its exact name."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "md": "text/plain; charset=utf-8",
}


class Asset(msgspec.Struct, frozen=True):
    body: bytes
    type: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """Return every file below static/, by its relative path."""
    return dict(_below(files("kbgym.viewer") / "static", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _below(entry, f"{name}/")
        elif (kind := TYPES.get(entry.name.rpartition(".")[2])) is not None:
            body = entry.read_bytes()
            found.append((name, Asset(body, kind, f'"{hashlib.sha256(body).hexdigest()[:16]}"')))
    return found
