"""Exams on Ray: a cluster of our own, one that is there, a worker killed in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from pickling_engine import FOLDER
from processes import gone
from ray_cluster import TESTS, free_port, ray_cluster

from kbgym.canonical import write_lines
from kbgym.experiments.chunks import EACH
from kbgym.worlds.people import generate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (pip install 'kbgym[ray]')"),
    pytest.mark.xdist_group("ray"),
]


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one worker each."""
    with ray_cluster(2) as made:
        yield made


@pytest.fixture(scope="module")
def exam(tmp_path_factory):
    """The words of an exam, how many questions it has, and the file one process writes."""
    folder = tmp_path_factory.mktemp("exam")
    world = generate(80, seed=3)
    world.save(folder / "world")
    questions = world.split("test_in")[:60]
    write_lines(folder / "asked.jsonl", questions)
    words = ["exam", str(folder / "world"), "--set", str(folder / "asked.jsonl"), "--set", "embedder=hash"]
    done = kbgym(*words, "--out", str(folder / "one.jsonl"))
    assert done.returncode == 0, done.stderr
    return words, questions, (folder / "one.jsonl").read_bytes()


def kbgym(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The verb in a process of its own, as a user runs it."""
    program = [sys.executable, "-c", "from kbgym.cli.main import run; run()", *arguments, "--json"]
    here = {**os.environ, "PYTHONPATH": str(TESTS), **environment}
    return subprocess.run(program, capture_output=True, text=True, env=here)


def test_a_killed_worker_costs_its_chunk_and_the_bytes_are_the_same(exam, tmp_path):
    words, questions, expected = exam
    (tmp_path / "fatal").write_text(questions[len(questions) // 2].text)
    out = tmp_path / "rows.jsonl"
    ray = ["--agent", "pickling_engine:Mortal", "--set", "engine=ray", "--set", "workers=2", "--out", str(out)]
    done = kbgym(*words, *ray, **{FOLDER: str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1 and json.loads(done.stdout)["n"] == len(questions)
    assert out.read_bytes() == expected
    assert (tmp_path / "dead").exists(), "nobody was killed"
    asked = [line.split(" ", 1) for line in (tmp_path / "asked").read_text().splitlines()]
    assert len({process for process, _ in asked}) >= 2
    texts = [text for _, text in asked]
    assert set(texts) == {question.text for question in questions}
    chunk = len(questions) // (EACH * 2)
    assert 0 < len(texts) - len(set(texts)) <= chunk
    for process in {process for process, _ in asked}:
        assert gone(int(process)), "a worker outlived the exam"


@pytest.mark.parametrize("kind", ["client", "direct"])
def test_an_address_leads_to_the_workers_of_a_cluster(cluster, exam, tmp_path, kind):
    words, questions, expected = exam
    addresses, token = cluster
    out = tmp_path / "rows.jsonl"
    ray = ["--set", "engine=ray", "--set", f"address={addresses[kind]}", "--set", "workers=2"]
    done = kbgym(*words, *ray, "--out", str(out), **token)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.count("\n") == 1 and json.loads(done.stdout)["n"] == len(questions)
    assert out.read_bytes() == expected


def test_what_goes_wrong_there_is_one_sentence_here(cluster, exam):
    words, _, _ = exam
    addresses, token = cluster
    ray = ["--set", "engine=ray", "--set", f"address={addresses['direct']}"]
    done = kbgym(*words, *ray, "--agent", "nobody", **token)
    assert done.returncode == 2 and done.stderr.startswith("kbgym: there is no agent 'nobody'")
    done = kbgym(*words, *ray, "--agent", "pickling_engine:Broken", **token)
    assert done.returncode == 1
    assert done.stderr == "kbgym: a Ray worker failed: ZeroDivisionError: division by zero\n"


def test_an_address_where_nobody_is_is_one_sentence(exam):
    words, _, _ = exam
    address = f"127.0.0.1:{free_port()}"
    done = kbgym(*words, "--set", "engine=ray", "--set", f"address={address}")
    assert done.returncode == 2 and done.stderr.startswith(f"kbgym: there is no Ray cluster at address {address}")
