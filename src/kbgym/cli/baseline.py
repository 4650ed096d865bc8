"""`kbgym baseline`: the store that an arm builds from a world's documents."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.agents.llm.connect import is_model
from kbgym.analysis.health import coverage
from kbgym.api.factory import CASSETTE, embedder_named
from kbgym.baselines import ARMS, arm_named, build_arm
from kbgym.baselines.written import COMPLETION, Summariser
from kbgym.canonical import pretty
from kbgym.cli.common import Printed, progress, verb
from kbgym.cli.settings import option, options
from kbgym.cli.spending import Spending, spending_options, with_spend
from kbgym.errors import BadInput
from kbgym.search.base import search_named
from kbgym.trace import is_url, shown
from kbgym.trace.backend import save_store
from kbgym.worlds.kinds import search_of
from kbgym.worlds.world import World


@verb("baseline", epilog="\b\nArms:\n" + "\n".join(f"  {a.name:13} {a.description}" for a in ARMS.values()))
@click.argument("arm")
@option("world", "--world", "folder", required=True, help="The documents.")
@options("embedder", default="")
@spending_options
def command(arm: str, folder: Path, out: str, seed: int, embedder: str, agent: str | None, **flags: Any) -> Printed:
    """Build the store of one ARM from a world's documents alone, without questions or expected answers.

    Only graphrag can use a model: --agent names the model that writes its summaries. The folder contains records.jsonl,
    and arm.json with the arm's name, engine and notes.

    \b
    Example:
      kbgym baseline hipporag --world worlds-out/w0 --out stores/b3
      kbgym exam stores/b3 --world worlds-out/w0 --set test_in
      kbgym baseline graphrag --world worlds-out/w0 --out stores/b2 --agent llm:openai/gpt-5-mini --max-cost 2
    """
    chosen, spending = arm_named(arm), Spending(flags)
    if agent is not None and (arm != "graphrag" or not is_model(agent)):
        raise BadInput("--agent is for graphrag, and takes a model: llm:PROVIDER/MODEL or cassette:FILE.")
    world = World.load(folder)
    started = time.perf_counter()
    if agent is None:
        built = build_arm(arm, world, lambda: embedder_named(embedder), seed)
    else:
        # The cassette is kept beside the store, which may be a database.
        cassette = Path(f"{out}.{CASSETTE}") if agent.startswith("llm:") and not is_url(out) else None
        confirm = partial(spending.confirm_requests, agent, completion=COMPLETION)
        with spending.models([agent], cassette) as models, progress("summarising") as tick:
            assert models is not None
            summarise = Summariser(models, agent, spending.concurrency, confirm, with_spend(tick, models))
            built = build_arm(arm, world, lambda: embedder_named(embedder), seed, summarise)
        built = msgspec.structs.replace(built, tokens=summarise.tokens)
    seconds = time.perf_counter() - started
    about = {
        "arm": arm,
        **({"agent": agent} if agent else {}),
        "engine": chosen.engine or search_named(search_of(world)),
        **({"observations": chosen.observations} if chosen.observations else {}),
        "seed": seed,
        "tokens": built.tokens,
        "notes": built.notes,
    }
    save_store(built.store, out, pretty({**about, "world": world.hash}))
    share = coverage(built.store).direct
    authored = len(built.store.authored())
    counts = {"documents": len(built.store), "authored": authored, "links": built.store.links}
    result = {**about, **counts, "coverage": round(share, 4), "seconds": round(seconds, 3)}
    text = (
        f"{shown(out)}: {chosen.label}, {len(built.store):,} documents ({authored:,} of them written by the arm) and "
        f"{built.store.links:,} links, covering {share:.1%} of the originals; built in {seconds:.1f} s."
    )
    return result, text
