"""Equal seeds give equal bytes: checked against a recorded hash, under several hash seeds and Python versions."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
# The worlds of seed 0. If one changes, every recorded run on it is void: add a version and say so.
GOLDEN = {
    "2": "22a0423efb07c4522beb35aabc3058ee6b33e77b5b347808e8f5e684103b1905",
    "3": "0e4a057b068a346d2546d15e6f8a81e46f34f84b88c6641d466b9cffd2e761a3",
}


def bytes_made_by(python: str, out: Path, benchmark: str = "2", **environment: str) -> str:
    """One hash over the three files that `kbgym generate` writes under this interpreter."""
    code = "import sys; from kbgym.cli.main import run; run(['generate', '--seed', '0', '--quiet', *sys.argv[1:]])"
    arguments = ["--benchmark", benchmark, "--out", str(out)]
    subprocess.run([python, "-c", code, *arguments], env=_env(**environment), check=True, timeout=120)
    files = sorted(out.iterdir())
    assert [file.name for file in files] == ["documents.jsonl", "questions.jsonl", "world.json"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _env(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE), **more}


@pytest.mark.parametrize("benchmark", GOLDEN)
@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_the_hash_seed_changes_nothing(benchmark, hash_seed, tmp_path):
    assert bytes_made_by(sys.executable, tmp_path / "w", benchmark, PYTHONHASHSEED=hash_seed) == GOLDEN[benchmark]


@pytest.mark.parametrize("benchmark", GOLDEN)
def test_the_locale_changes_nothing(benchmark, tmp_path):
    assert bytes_made_by(sys.executable, tmp_path / "w", benchmark, LC_ALL="C", LANG="C") == GOLDEN[benchmark]


@pytest.mark.parametrize("benchmark", GOLDEN)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_every_installed_python_makes_the_same_bytes(version, benchmark, tmp_path):
    python = _interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} with click, msgspec and rich is installed")
    assert bytes_made_by(python, tmp_path / "w", benchmark) == GOLDEN[benchmark]


def _interpreter(version: str) -> str | None:
    """The first Python of a version that has what the core needs; KBGYM_PYTHONS may name more to try."""
    named = [path for path in os.environ.get("KBGYM_PYTHONS", "").split(os.pathsep) if path]
    homes = [str(path) for path in sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    found = [shutil.which(f"python{version}")]
    probe = "import sys, click, msgspec, rich; print('%d.%d' % sys.version_info[:2])"
    for python in [sys.executable, *named, *found, *homes]:
        if python:
            done = subprocess.run([python, "-c", probe], capture_output=True, text=True, env=_env())
            if done.stdout.strip() == version:
                return python
    return None
