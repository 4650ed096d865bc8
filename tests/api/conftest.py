"""A small trained run, shared by the tests that only look at it."""

from __future__ import annotations

import pytest

import kbgym

SMALL = {"questions": 12, "epochs": 1, "embedder": "hash", "eval": False}


@pytest.fixture(scope="session")
def small_world() -> kbgym.World:
    return kbgym.generate(people=60, seed=3)


@pytest.fixture(scope="session")
def trained(small_world, tmp_path_factory):
    """The folder of a run; whoever wants to write to it copies it."""
    folder = tmp_path_factory.mktemp("artefact") / "run"
    kbgym.train(small_world, folder, **SMALL).close()
    return folder
