"""Places to view, each made once for all tests of a process; layouts are kept in a folder of the tests' own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from viewing import hostile_run, small_run


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("KBGYM_CACHE")
    os.environ["KBGYM_CACHE"] = str(tmp_path_factory.mktemp("viewer-cache"))
    yield
    os.environ.pop("KBGYM_CACHE")
    if before is not None:
        os.environ["KBGYM_CACHE"] = before


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("viewer") / "small")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_run(tmp_path_factory.mktemp("viewer") / "hostile")
