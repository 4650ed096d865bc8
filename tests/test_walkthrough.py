"""The recording behind docs/your-own-documents.md: small, labelled, by an honest player, made with the prompts of now.

When one of these says that it no longer fits: python scripts/record_walkthrough.py
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))

from record_walkthrough import CASSETTE, MODEL, NAMED, PAGE, commands  # noqa: E402

from kbgym.agents.llm.cassette import Cassette  # noqa: E402
from kbgym.agents.llm.prompting import prompt  # noqa: E402
from kbgym.gym.tools import openai_tools  # noqa: E402

AGAIN = "the recording no longer fits: run python scripts/record_walkthrough.py"


@pytest.fixture(scope="module")
def cassette() -> Cassette:
    return Cassette(CASSETTE, record=False)


def test_the_recording_is_small_and_says_who_plays(cassette):
    assert CASSETTE.stat().st_size < 1_000_000
    assert {cassette.agent(role).name for role in ("reader", "curator", "writer")} == {MODEL}
    assert "scripted" in MODEL
    page = PAGE.read_text(encoding="utf-8")
    assert "No language model plays here" in page and "scripts/harbour_player.py" in page


def test_the_recording_was_made_with_the_prompts_and_tools_of_now(cassette):
    exchanges = cassette.exchanges
    systems = {one.system for one in exchanges}
    for name in ("retrieval", "curation_class", "suggest"):
        assert any(system.startswith(prompt(name)) for system in systems), AGAIN
    known = ("retrieval", "curation_class", "suggest")
    assert all(system.startswith(tuple(map(prompt, known))) for system in systems), AGAIN
    tools = [list(one.tools) for one in exchanges]
    for role in ("reader", "curator"):
        assert openai_tools(role) in tools, AGAIN


def test_every_command_that_needs_a_model_names_the_recording():
    named = [command for command in commands() if NAMED in command]
    assert {shlex.split(command)[1] for command in named} == {"train", "exam", "questions"}
    assert not any("llm:" in command for command in commands())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_numbers_on_the_page_are_those_of_the_recording(tmp_path):
    """Train and examine as the page does; its table says what comes out."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said: dict[str, str] = {}
    printed_lines: set[str] = set()
    for command in commands():
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{AGAIN} ({command})\n{done.stdout}{done.stderr}"
        printed_lines.update(done.stdout.splitlines())
        for what in ("train-before", "train-after", "test-before", "test-after", "drafts from"):
            if what in command + done.stdout:
                said.setdefault(what, done.stdout)
    page = PAGE.read_text(encoding="utf-8")
    for shown in re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for line in shown.splitlines():
            assert line in printed_lines, f"no command prints this line of the page: {line}"
    for name, row in (("train", "the twelve questions"), ("test", "six it never saw")):
        line = next(line for line in page.splitlines() if row in line)
        for when, cell in zip(("before", "after"), re.findall(r"F1 ([\d.]+), ([\d.]+) actions", line), strict=True):
            printed = said[f"{name}-{when}"]
            assert f"F1 {cell[0]}" in printed and f"{cell[1]} actions" in printed, f"the page is wrong: {printed}"
    assert "1 dropped: with an answer that is not in their supports" in said["drafts from"]
