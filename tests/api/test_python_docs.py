"""The Python in docs/python.md and in the notebook runs as it stands, also inside a loop, as a notebook runs it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

import kbgym

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOK = ROOT / "examples" / "python.ipynb"
PAGE = ROOT / "docs" / "python.md"


def cells() -> list[str]:
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


def execute(codes: list[str]) -> dict[str, object]:
    known: dict[str, object] = {}
    for number, code in enumerate(codes, 1):
        exec(compile(code, f"cell {number}", "exec"), known)
    return known


async def execute_in_a_loop(codes: list[str]) -> dict[str, object]:
    return execute(codes)


@pytest.mark.parametrize("in_a_loop", [True, False])
def test_the_notebook_runs_top_to_bottom(in_a_loop, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    known = asyncio.run(execute_in_a_loop(cells())) if in_a_loop else execute(cells())
    printed = capsys.readouterr().out
    assert "trained: " in printed and "Actions left: 14" in printed
    assert known["run"].iteration == 20 and known["run"].store.links > known["mine"].links


def test_the_notebook_is_kept_without_its_outputs():
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None


def test_the_page_runs_and_says_what_training_gained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks[0].strip().splitlines()) - 1 <= 10  # ten lines and an empty one
    known = execute(blocks)
    flat, trained = known["flat"].summary, known["trained"].summary
    assert trained.actions < flat.actions and trained.f1 >= flat.f1


def test_the_page_names_everything_public():
    text = PAGE.read_text(encoding="utf-8")
    least = {"Damaged", "Failed", "BadInput", "KbgymError", "Missing", "Exam", "Workspace", "Agents", "Record", "Row"}
    least |= {"Document", "Key", "Question", "Policy", "Transcript", "gradient", "default_embedder", "open_folder"}
    least |= {"save_store", "Action", "Ledger"}  # values and lower parts, described where they are defined
    assert {name for name in kbgym.__all__ if not re.search(rf"\b{name}\b", text)} <= least
