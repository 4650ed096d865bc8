"""A server of its own for a test, or one shared by the tests of a file that change nothing others look at."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Server, Tokens, family_store, make_tokens, serving

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # streams of questions, and curators that mean harm


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Tokens]]:
    place = family_store(tmp_path_factory.mktemp("served") / "store")
    tokens = make_tokens(place)
    with serving(place) as server:
        yield server, tokens


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[tuple[Server, Tokens, Path]]:
    place = family_store(tmp_path / "store")
    tokens = make_tokens(place)
    with serving(place) as server:
        yield server, tokens, place
