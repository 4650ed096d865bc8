"""A run's folder: begun once, opened again with the same settings and world, and what it keeps beside the trace."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from kbgym.errors import BadInput, Damaged
from kbgym.training.run import Run, Settings
from kbgym.worlds.world import Document, World

WORLD = World((Document("a", "A."), Document("b", "B.")))
SETTINGS = Settings(questions=3, embedder="hash", seed=5)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.open_or_create(tmp_path / "run", WORLD, SETTINGS)


def test_what_is_begun_is_opened_again(run: Run, tmp_path: Path) -> None:
    assert sorted(path.name for path in run.folder.iterdir()) == ["run.json", "world"]
    header = json.loads((run.folder / "run.json").read_text())
    assert header == {"kbgym": 1, "settings": msgspec.to_builtins(SETTINGS), "world": WORLD.hash}
    before = (run.folder / "run.json").read_bytes()
    again = Run.open_or_create(run.folder, WORLD, SETTINGS)
    assert (again.settings, again.world, again.world_hash) == (SETTINGS, WORLD, WORLD.hash)
    assert again.world is again.world, "it is read once"
    assert (run.folder / "run.json").read_bytes() == before


def test_other_settings_or_another_world_are_refused(run: Run) -> None:
    other = msgspec.structs.replace(SETTINGS, seed=6, epochs=7)
    with pytest.raises(BadInput, match=r"was started with epochs 2, not 7; seed 5, not 6\. Use those"):
        Run.open_or_create(run.folder, WORLD, other)
    with pytest.raises(BadInput):
        Run.open_or_create(run.folder, World(WORLD.documents[:1]), SETTINGS)


def test_what_is_no_run_or_a_damaged_one_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"is not a run: it has no run\.json"):
        Run(tmp_path)
    for broken in (b"{", b"\xff", b"{}", b'{"settings": {}}', b'{"settings": {"colour": 1}, "world": "x"}'):
        (tmp_path / "run.json").write_bytes(broken)
        with pytest.raises(Damaged):
            Run(tmp_path)


def test_exams_have_a_folder(run: Run) -> None:
    for _ in range(2):
        assert run.exam_path("flat-both") == run.folder / "exams" / "flat-both.jsonl"
    assert (run.folder / "exams").is_dir()


def test_a_strategy_that_is_no_name_is_rejected(run: Run) -> None:
    settings = {"strategy": "../../elsewhere"}
    (run.folder / "run.json").write_text(json.dumps({"settings": settings, "world": WORLD.hash}))
    with pytest.raises(BadInput):
        Run(run.folder)
