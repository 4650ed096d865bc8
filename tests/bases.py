"""Texts as the base of a store in PostgreSQL, for who searches them there."""

from __future__ import annotations

import itertools

from postgres import Cluster

from kbgym.backends.postgres.backend import PostgresBackend
from kbgym.backends.postgres.base import DatabaseBase
from kbgym.store import Store, source
from kbgym.trace.backend import open_backend, save_store

_made = itertools.count(1)


def base_of(cluster: Cluster, texts: dict[str, str], **where: str) -> DatabaseBase:
    """The base of a new store that begins with these texts, in their order."""
    url = cluster.url(f"texts{next(_made)}", **where)
    save_store(Store(source(id, text) for id, text in texts.items()), url)
    return base_at(url)


def base_at(url: str) -> DatabaseBase:
    place = open_backend(url)
    assert isinstance(place, PostgresBackend)
    return place.base
