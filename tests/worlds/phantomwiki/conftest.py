"""Output folders in PhantomWiki's format: of families made up here, and of the official package where there is one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from families import Families

from kbgym.errors import Missing
from kbgym.worlds.people import Sizes
from kbgym.worlds.phantomwiki.files import generate, generator


@pytest.fixture(scope="session")
def small() -> Sizes:
    return Sizes(train=24, test_in=12, test_out=6, eval_in=4, eval_out=2)


@pytest.fixture(scope="session")
def families() -> Families:
    return Families(seed=3)


@pytest.fixture(scope="session")
def folder(families, tmp_path_factory) -> Path:
    """An output folder of families made up here."""
    return families.write(tmp_path_factory.mktemp("pw") / "out")


@pytest.fixture(scope="session")
def official(tmp_path_factory) -> tuple[Path, Path]:
    """Two runs of the official generator at the paper's settings."""
    try:
        generator()
    except Missing as missing:
        pytest.skip(str(missing))
    root = tmp_path_factory.mktemp("official")
    for name in ("one", "two"):
        (root / name).mkdir()
        generate(root / name, 1, 16, 60)
    return root / "one", root / "two"


@pytest.fixture
def broken(folder, tmp_path) -> Path:
    """A copy of the folder, to be spoilt."""
    return Path(shutil.copytree(folder, tmp_path / "broken"))
