"""A folder from another source is data: none of its agents, files, models or commands runs before it is trusted."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from family import family

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.registry import make_agent, make_judge
from kbgym.api import open as opened
from kbgym.canonical import pretty
from kbgym.errors import BadInput
from kbgym.serving.learning.setup import open_online
from kbgym.training.run import Run, Settings
from kbgym.worlds.world import Question, World

Kbgym = Callable[..., tuple[int, str, str]]
EVIL = """
from pathlib import Path
Path(__file__).with_name("imported").touch()
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
def make(): return ReferenceCurator()
def read(): return ReferenceReader()
"""
NAMED = {
    "import and call 'evil_agent:make'": {"curator": "evil_agent:make"},
    "import and call 'os:abort'": {"reader": "os:abort"},
    "play back the file '/dev/zero'": {"reader": "cassette:/dev/zero"},
    "ask the model 'local/m' at your cost": {"judge": "llm:local/m"},
}


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module that leaves a mark when it is imported, and a fresh place to remember trust in."""
    (tmp_path / "evil_agent.py").write_text(EVIL, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("KBGYM_CONFIG", str(tmp_path / "config"))
    yield tmp_path / "imported"
    sys.modules.pop("evil_agent", None)


def stranger(place: Path, **agents: str) -> Path:
    """Return a run folder as if received from another person."""
    Run.open_or_create(place, family(), Settings(embedder="hash", **agents))
    return place


def world(place: Path) -> Path:
    """The family with one question."""
    asked = Question(id="q1", split="train", class_="", template="", text="Who?", golds=("Ada",))
    World(family().documents, (asked,)).save(place)
    return place


def files(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("verb", ["serve", "idle", "learn"])
@pytest.mark.parametrize("does", NAMED)
def test_nothing_a_folder_names_plays(kbgym: Kbgym, tmp_path: Path, evil: Path, verb: str, does: str) -> None:
    place = stranger(tmp_path / "run", **NAMED[does])
    traffic = tmp_path / "traffic.jsonl"
    traffic.write_text(json.dumps({"question": "Who?", "answers": ["Ada"]}) + "\n", encoding="utf-8")
    more = {"serve": ("--http", "127.0.0.1:0", "--no-auth"), "idle": ("--idle",), "learn": ("--traffic", traffic)}
    before = files(place)
    code, _, err = kbgym("learn" if verb == "idle" else verb, place, *more[verb])
    assert code == 2 and err.count("\n") == 1 and f"would {does}, and is not trusted" in err
    assert not evil.exists() and files(place) == before


def test_trust_is_said_once_and_holds_for_these_names_in_this_place(kbgym: Kbgym, tmp_path: Path, evil: Path) -> None:
    place = stranger(tmp_path / "run", curator="evil_agent:make")
    assert kbgym("learn", place, "--idle", "--trust")[0] == 0
    assert evil.exists()
    assert kbgym("learn", place, "--idle")[0] == 0
    elsewhere = Path(shutil.copytree(place, tmp_path / "elsewhere"))
    assert kbgym("learn", elsewhere, "--idle")[0] == 2
    header = json.loads((place / "run.json").read_text(encoding="utf-8"))
    header["settings"]["reader"] = "evil_agent:read"
    (place / "run.json").write_text(pretty(header), encoding="utf-8")
    assert kbgym("learn", place, "--idle")[0] == 2
    assert kbgym("learn", place, "--idle", "--set", "reader=reference")[0] == 0, "the curator is still trusted"


def test_who_is_named_on_the_command_line_plays(kbgym: Kbgym, tmp_path: Path, evil: Path) -> None:
    place = stranger(tmp_path / "run", curator="os:abort")
    assert kbgym("learn", place, "--idle", "--set", "curator=reference")[0] == 0
    assert kbgym("learn", place, "--idle", "--set", "curator=evil_agent:make")[0] == 0
    assert evil.exists()


def test_ones_own_run_is_trusted_as_it_was_made(kbgym: Kbgym, tmp_path: Path, evil: Path) -> None:
    flags = ("--out", tmp_path / "run", "--questions", 1, "--epochs", 1, "--set", "embedder=hash")
    code, _, err = kbgym("train", "--world", world(tmp_path / "world"), *flags, "--set", "curator=evil_agent:make")
    assert code == 0, err
    assert kbgym("learn", tmp_path / "run", "--idle")[0] == 0


def test_an_experiment_from_elsewhere(kbgym: Kbgym, tmp_path: Path, evil: Path) -> None:
    place = tmp_path / "exp"
    place.mkdir()
    training = {"name": "trained-paper", "label": "x", "settings": {"curator": "evil_agent:make"}}
    plan = {"kind": "paper", "trainings": [training], "arms": ["flat"], "seeds": [0]}
    (place / "experiment.json").write_text(json.dumps(plan), encoding="utf-8")
    code, _, err = kbgym("experiment", "run", "paper", "--out", place, "--strategy", "class")
    assert code == 2 and "would import and call" in err
    assert [path.name for path in place.iterdir()] == ["experiment.json"]
    for name in ("../../out", "/tmp/out", ".hidden", "a/b", ""):
        plan["trainings"] = [{**training, "name": name, "settings": {}}]
        (place / "experiment.json").write_text(json.dumps(plan), encoding="utf-8")
        code, _, err = kbgym("experiment", "run", "paper", "--out", place)
        assert code == 2 and "is not a valid name" in err


def test_the_library_trusts_nobody_by_default(tmp_path: Path, evil: Path) -> None:
    place = stranger(tmp_path / "run", curator="evil_agent:make")
    with pytest.raises(BadInput, match="it is not trusted"):
        open_online(place, opened(place).settings, "hash")
    with pytest.raises(BadInput, match="it is not trusted"):
        make_judge("llm:local/m", trusted=())
    assert not evil.exists()
    assert make_agent("evil_agent:make", "curator", trusted=["evil_agent:make"])


@pytest.mark.parametrize(
    "name", [":", "..:x", ":x", "os:", "a b:c", ".os:abort", "os.:abort", "os:a.b", "\0:\0", "x:\n"]
)
def test_a_name_that_is_none(kbgym: Kbgym, tmp_path: Path, name: str) -> None:
    flags = ("--set", "train", "--set", "embedder=hash", "--agent", name)
    code, _, err = kbgym("exam", world(tmp_path / "world"), *flags)
    assert code == 2 and err.count("\n") == 1 and "is no agent" in err


def test_a_module_that_fails_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_agent.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match="ZeroDivisionError"):
        make_agent("broken_agent:make", "reader")


class TestCassettes:
    def test_a_device_or_a_pipe_is_none(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for file in (Path("/dev/zero"), tmp_path / "pipe"):
            with pytest.raises(BadInput, match="no regular file"):
                Cassette(file, record=False)

    def test_a_file_without_end_is_none(self, tmp_path: Path) -> None:
        with (tmp_path / "huge").open("wb") as file:
            file.truncate(1 << 40)  # a hole, which takes no room
        with pytest.raises(BadInput, match="too many for a cassette"):
            Cassette(tmp_path / "huge", record=False)

    def test_recording_writes_through_no_link_and_over_no_other_file(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_bytes(b"secret")
        (tmp_path / "link").symlink_to(tmp_path / "key")
        for file in (tmp_path / "link", tmp_path / "key"):
            with pytest.raises(BadInput):
                Cassette(file, record=True)
        assert (tmp_path / "key").read_bytes() == b"secret"
