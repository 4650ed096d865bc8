"""Whether a store's place is a folder or a database, and how it is called where people read it.

It opens nothing, and loads nothing: a server that has to answer at once asks here.
"""

from __future__ import annotations

from pathlib import Path

SCHEMES = ("postgresql://", "postgres://")


def is_url(place: str | Path) -> bool:
    return str(place).startswith(SCHEMES)


def shown(place: str | Path) -> str:
    """A store's name as it may be shown: a URL without its password."""
    if is_url(place):
        from kbgym.trace.postgres.url import parse

        address = parse(str(place))
        return address.shown if address.at is None else f"{address.shown}@{address.at}"
    return str(place)
