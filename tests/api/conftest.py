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
    """Return the folder of a run; a test that writes to it copies it first."""
    folder = tmp_path_factory.mktemp("artefact") / "run"
    kbgym.train(small_world, folder, **SMALL).close()
    return folder
