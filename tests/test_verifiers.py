"""The reader's pass inside verifiers, with the real package and a scripted server: the exam's rows, and a reward."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from fault_server import FaultServer

import kbgym
from kbgym.training.exam import Row

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("verifiers") is None, reason="the extra verifiers is not installed"),
]


def tasks(**config):
    from kbgym.integrations.verifiers_reader import ReaderTasksetConfig
    from kbgym_reader import ReaderTaskset

    return list(ReaderTaskset(ReaderTasksetConfig(people=40, **config)))


def test_the_documented_command_plays_a_server_and_comes_to_the_exams_rows(tmp_path):
    page = (Path(__file__).parent.parent / "docs" / "research.md").read_text(encoding="utf-8")
    command = re.findall(r"^\$ vf-eval (.*)$", page, re.MULTILINE)[0]
    taskset = ["--env.taskset.embedder", "hash", "--env.taskset.task.price", "0.05"]
    out = ["--no-push", "--no-rich", "--output-dir", str(tmp_path), "--run.name", "smoke"]
    with FaultServer() as server:
        words = shlex.split(command.replace("http://127.0.0.1:8080/v1", server.url))
        started = [Path(sys.executable).with_name("vf-eval"), *words, *taskset, *out]
        done = subprocess.run(started, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "smoke" / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    traces = [trace for line in lines for trace in json.loads(line)["traces"]]
    found = {row.id: (row, trace) for trace in traces for row in [msgspec.convert(trace["info"]["kbgym_row"], Row)]}
    world = kbgym.generate(people=40, seed=1)
    world.save(tmp_path / "w")
    wanted = kbgym.open(tmp_path / "w", embedder="hash").examine("reference", world.questions).rows
    assert len(found) == 6
    for row in wanted:
        if row.id in found:
            same, trace = found[row.id]
            assert same == row
            assert trace["rewards"]["f1_less_actions"]["score"] == pytest.approx(row.f1 - 0.05 * row.actions)
            assert trace["metrics"]["actions"] == row.actions


def test_training_and_evaluation_never_meet():
    made = {split: tasks(split=split, worlds=3, questions=20) for split in ("train", "eval")}
    seeds = {split: {task.data.world[1] for task in found} for split, found in made.items()}
    assert seeds == {"train": {0, 2, 4}, "eval": {1, 3, 5}}
    assert {task.data.id for task in made["train"]}.isdisjoint(task.data.id for task in made["eval"])
    assert [task.data for task in tasks(worlds=3, questions=20)] == [task.data for task in made["train"]]


def test_a_hard_world_has_its_own_budget_and_the_gold_is_not_in_the_prompt():
    (easy, hard) = (tasks(hard=hard, questions=1)[0].data for hard in (False, True))
    assert easy.prompt.endswith("Actions left: 15.") and hard.prompt.endswith("Actions left: 8.")
    assert easy.prompt.startswith(f"Question: {easy.question['text']}\n")


def test_it_is_loaded_by_its_name():
    import verifiers.v1 as vf

    made = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "kbgym-reader", "people": 40}}))
    assert type(made).__name__ == "ReaderPassEnv"
    assert made.config.agent.runtime.type == "subprocess"
