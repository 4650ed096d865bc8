"""The viewer: runs, experiments and stores as a local page. It reads; no route of it changes a store or a run."""

from __future__ import annotations

from typing import Any


def picked(thing: object, *fields: str) -> dict[str, Any]:
    """Some fields of a thing by name, for the page."""
    return {name: getattr(thing, name) for name in fields}
