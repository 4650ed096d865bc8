"""Learning online on a stream of 300 questions whose keys are asked for unevenly; and curators that mean harm."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from serving import replayed
from streams import skewed_traffic

from kbgym.analysis.statistics import Sampled, difference, ratio
from kbgym.errors import Missing
from kbgym.search.embed import default_embedder
from kbgym.serving.learning.setup import learn_traffic, open_online
from kbgym.training.run import Settings
from kbgym.worlds.people import generate

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gate.py"


@pytest.mark.slow
def test_the_online_store_beats_the_flat_one_on_the_questions_it_has_not_seen_yet(tmp_path: Path) -> None:
    """World 0 and stream 0; what five of them say together, with intervals, is in benchmarks/RESULTS.md."""
    try:
        default_embedder()
    except Missing as missing:
        pytest.skip(f"needs the real embedder: {missing}")
    world = generate(people=500, seed=0)
    world.save(tmp_path / "store")
    traffic = skewed_traffic(world, 300)
    keys = [row.keys for row in traffic]

    async def work() -> None:
        online = open_online(tmp_path / "store", Settings(strategy="class"))
        try:
            learnt = await learn_traffic(online, traffic)
        finally:
            await online.live.close()
        f1 = difference([Sampled([one.f1 for one in learnt], [one.flat_f1 for one in learnt], keys)]).interval
        actions = [one.actions for one in learnt], [one.flat_actions for one in learnt]
        rho = ratio([Sampled(*actions, keys)]).interval
        print(f"F1 {f1}, actions {rho}")
        assert f1.value > 0
        assert rho.high < 0.8
        early, late = (ratio([Sampled(*(arm[part] for arm in actions))]) for part in (slice(100), slice(200, 300)))
        assert late.value < early.value, "it goes on getting better"

    asyncio.run(work())
    assert replayed(tmp_path / "store")


def test_a_stream_holds_no_question_of_an_exam() -> None:
    world = generate(people=80, seed=3)
    kept_back = {question.text for question in world.questions if question.split != "train"}
    stream = [row.question for row in skewed_traffic(world, 300)]
    assert kept_back.isdisjoint(stream) and len(set(stream)) < 200, "keys asked for unevenly come again"


@pytest.mark.slow
def test_the_gate_keeps_harmful_curators_from_questions_it_never_asks_and_lets_a_good_one_work() -> None:
    command = [sys.executable, str(BENCHMARK), "--seeds", "3", "--json", "--curators", "wrong indexes,edits,paper"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in ("wrong indexes", "edits"):
        assert found[name]["open"][0] < -0.03, "without a gate this curator does no harm: the test shows nothing"
        assert found[name]["worst"] >= -0.03
        assert found[name]["refused"] > 10
    good = found["paper"]
    assert good["admitted"] > 10 and good["gated"][0] >= 0 and good["actions"][1] < good["actions"][0]
