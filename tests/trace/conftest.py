"""Places of both kinds for one suite of tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import postgres
import pytest

from kbgym.store import Record, Store
from kbgym.trace.backend import save_store


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture(params=["folder", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path, numbers: Iterator[int]) -> postgres.Maker:
    """Makes a store of records without history; gives what a user would call it."""

    def made(records: Sequence[Record]) -> str:
        number = next(numbers)
        if request.param == "folder":
            place = str(tmp_path / f"store{number}")
        else:
            place = request.getfixturevalue("cluster").url(f"t{number}")
        save_store(Store(records), place)
        return place

    return made
