"""Tell database URLs from folders, and name a store without showing a password. Loads nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbgym import plugins


def is_url(place: str | Path) -> bool:
    """Return True if the place is a database URL."""
    scheme, found, _ = str(place).partition("://")
    return bool(found) and plugins.has("kbgym.backends", scheme)


def shown(place: str | Path) -> str:
    """Return the name of a store for display: a URL loses its password."""
    if is_url(place):
        return str(plugin_for(str(place)).display_name(str(place)))
    return str(place)


def plugin_for(url: str) -> Any:
    """Load the backend of a URL's scheme: a `trace.backend.BackendPlugin`."""
    return plugins.load("kbgym.backends", url.partition("://")[0])
