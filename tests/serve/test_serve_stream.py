"""Learning online on a stream of 300 questions whose keys are asked for unevenly; and a curator that means harm."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from serving import HASH, opened, replayed
from traffic import WrongLinks, skewed_traffic

from kbgym.agents.reference.reader import ReferenceReader
from kbgym.analysis.stats import ratio_of_means, score_difference
from kbgym.errors import Missing
from kbgym.protocol.exam import examine, summarise
from kbgym.protocol.run import Settings
from kbgym.search.embed import default_embedder
from kbgym.serve.gate import Gate
from kbgym.serve.online import Online
from kbgym.serve.setup import held_out, learn_traffic, open_online
from kbgym.worlds.people import generate
from kbgym.worlds.world import World


@pytest.mark.slow
def test_the_online_store_beats_the_flat_one_on_the_questions_it_has_not_seen_yet(tmp_path: Path) -> None:
    try:
        default_embedder()
    except Missing as missing:
        pytest.skip(f"needs the real embedder: {missing}")
    world = generate(people=500, seed=0)
    world.save(tmp_path / "store")

    async def work() -> None:
        online = open_online(tmp_path / "store", Settings(strategy="class"))
        try:
            learnt = await learn_traffic(online, skewed_traffic(world, 300))
        finally:
            await online.owner.close()
        f1 = score_difference([one.f1 for one in learnt], [one.flat_f1 for one in learnt])
        rho = ratio_of_means([one.actions for one in learnt], [one.flat_actions for one in learnt])
        print(f"F1 {f1}, actions {rho}")
        assert f1.low > 0
        assert rho.high < 0.8
        early, late = (
            ratio_of_means([one.actions for one in some], [one.flat_actions for one in some])
            for some in (learnt[:100], learnt[200:])
        )
        assert late.value < early.value, "it goes on getting better"

    asyncio.run(work())
    assert replayed(tmp_path / "store")


async def harmed(place: Path, world: World, gate: Gate | None) -> tuple[float, float, Online]:
    """F1 of the held-out questions before and after a harmful curator has had its way with a stream."""
    async with opened(place, HASH, WrongLinks, gate) as online:

        async def held_out_f1() -> float:
            now = online.owner.snapshot()
            return summarise(await examine(now.store, now.engine, world.split("eval"), ReferenceReader)).f1

        before = await held_out_f1()
        await learn_traffic(online, skewed_traffic(world, 60))
        return before, await held_out_f1(), online


@pytest.mark.slow
def test_the_gate_stops_a_curator_that_adds_wrong_links(tmp_path: Path) -> None:
    world = generate(people=80, seed=3)
    for name in ("open", "gated"):
        world.save(tmp_path / name)
    before, after, _ = asyncio.run(harmed(tmp_path / "open", world, None))
    assert before - after > 0.1, "without a gate this curator does no harm: the test shows nothing"
    gate = Gate(20, held_out(tmp_path / "gated", None), ReferenceReader)
    before, after, online = asyncio.run(harmed(tmp_path / "gated", world, gate))
    assert before - after <= 0.03
    assert online.refused > 10
    assert replayed(tmp_path / "gated") == online.owner.store.fingerprint
