from functools import cache
from pathlib import Path

import pytest

from kbgym.search.embed import HashEmbedder
from kbgym.worlds import people
from kbgym.worlds.people.paper import read
from kbgym.worlds.world import World

PAPER = Path(__file__).parents[3] / "shared" / "data" / "paper-universe.json"


@cache
def _small() -> World:
    return people.generate(60, 0, people.Sizes(40, 20, 10, 4, 4))


@cache
def _paper() -> World:
    return read(PAPER)


@pytest.fixture(scope="session")
def small() -> World:
    """A world of sixty people, made once."""
    return _small()


@pytest.fixture(scope="session")
def paper() -> World:
    if not PAPER.is_file():
        pytest.skip("the paper's universe is not beside the repository (../shared/data/paper-universe.json)")
    return _paper()


@pytest.fixture(scope="session")
def embedder() -> HashEmbedder:
    return HashEmbedder()
