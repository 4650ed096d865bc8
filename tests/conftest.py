"""Settings for every test; being here, it also lets tests in subfolders import the helpers beside it."""

import os
from collections.abc import Iterator

import postgres
import pytest
from hypothesis import settings

# No test may depend on how fast a machine is.
settings.register_profile("kbgym", deadline=None)
settings.load_profile("kbgym")


@pytest.fixture(scope="session", autouse=True)
def own_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's own configuration folder out of the tests."""
    before = os.environ.get("KBGYM_CONFIG")
    os.environ["KBGYM_CONFIG"] = str(tmp_path_factory.mktemp("config"))
    yield
    os.environ.pop("KBGYM_CONFIG")
    if before is not None:
        os.environ["KBGYM_CONFIG"] = before


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgres.Cluster]:
    """One PostgreSQL server for the session; every test makes stores of its own on it."""
    if postgres.installed() is None:
        pytest.skip(postgres.MISSING)
    # A crash of the server, not of the machine, is what is tested: the log is written, not flushed.
    made = postgres.Cluster("fsync = off")
    try:
        yield made
    finally:
        made.remove()
