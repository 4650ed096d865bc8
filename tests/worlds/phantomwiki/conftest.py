"""Output folders in PhantomWiki's format: of families made up here, and of the official package where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from families import Families

from kbgym.worlds.people import Sizes


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
    program = shutil.which("pw-generate", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None or shutil.which("swipl") is None:
        pytest.skip("pw-generate or SWI-Prolog is not installed (scripts/install_phantomwiki.sh)")
    root = tmp_path_factory.mktemp("official")
    how = "--seed 1 --num-family-trees 16 --num-questions-per-type 60 --article-format json --question-format json"
    for name in ("one", "two"):
        subprocess.run([program, "-od", str(root / name), *how.split()], check=True, capture_output=True, timeout=600)
    return root / "one", root / "two"


@pytest.fixture
def broken(folder, tmp_path) -> Path:
    """A copy of the folder, to be spoilt."""
    return Path(shutil.copytree(folder, tmp_path / "broken"))
