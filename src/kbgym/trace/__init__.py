"""Traces of stores, and where stores are kept. This module detects database URLs and imports no heavy modules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kbgym import plugins

if TYPE_CHECKING:
    from kbgym.trace.backend import BackendPlugin


def is_url(place: str | Path) -> bool:
    """Return True if the place is a database URL."""
    scheme, found, _ = str(place).partition("://")
    return bool(found) and plugins.has("kbgym.backends", scheme)


def shown(place: str | Path) -> str:
    """Return the display name of a store; a URL is shown without its password."""
    if is_url(place):
        return plugin_for(str(place)).display_name(str(place))
    return str(place)


def plugin_for(url: str) -> BackendPlugin:
    """Load the backend of a URL's scheme."""
    found: BackendPlugin = plugins.load("kbgym.backends", url.partition("://")[0])
    return found
