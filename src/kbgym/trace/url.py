"""Tell database URLs from folders, and name a store without showing a password. Loads nothing heavy."""

from __future__ import annotations

from pathlib import Path

SCHEMES = ("postgresql://", "postgres://")


def is_url(place: str | Path) -> bool:
    """Return True if the place is a database URL."""
    return str(place).startswith(SCHEMES)


def shown(place: str | Path) -> str:
    """Return the name of a store for display: a URL loses its password."""
    if is_url(place):
        from kbgym.backends.postgres.url import parse

        address = parse(str(place))
        return address.shown if address.at is None else f"{address.shown}@{address.at}"
    return str(place)
