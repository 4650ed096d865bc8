from functools import cache
from pathlib import Path

import pytest

from kbgym.worlds import people
from kbgym.worlds.world import World

PAPER = Path(__file__).parents[3] / "shared" / "data" / "paper-universe.json"


@cache
def _world(seed: int) -> World:
    return people.generate(500, seed)


@pytest.fixture(scope="session")
def world_of():
    """The default world of a seed, made once."""
    return _world


@pytest.fixture(scope="session")
def paper_file() -> Path:
    if not PAPER.is_file():
        pytest.skip("the paper's universe is not beside the repository (../shared/data/paper-universe.json)")
    return PAPER
