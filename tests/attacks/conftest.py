"""Fixtures of the attack tests: the helpers of the serving tests, and a server with its own store and tokens."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parents[1] / "serve"), str(Path(__file__).parents[2] / "benchmarks")]
from serving import Server, Tokens, family_store, make_tokens, serving


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[tuple[Server, Tokens, Path]]:
    place = family_store(tmp_path / "store")
    tokens = make_tokens(place)
    with serving(place) as server:
        yield server, tokens, place
