"""`kbgym baseline`: the store that an arm builds from a world's documents."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kbgym.analysis.health import coverage
from kbgym.api.factory import embedder_named
from kbgym.baselines import ARMS, arm_named, build_arm
from kbgym.canonical import pretty
from kbgym.cli.common import Printed, verb
from kbgym.cli.settings import option, options
from kbgym.search.base import search_named
from kbgym.trace import shown
from kbgym.trace.backend import save_store
from kbgym.worlds.kinds import search_of
from kbgym.worlds.world import World


@verb("baseline", epilog="\b\nArms:\n" + "\n".join(f"  {a.name:13} {a.description}" for a in ARMS.values()))
@click.argument("arm")
@option("world", "--world", "folder", required=True, help="The documents.")
@click.option("--out", required=True, metavar="STORE", help="The folder or postgresql:// URL to write.")
@click.option("--seed", default=0, show_default=True, help="Seed for breaking ties (graphrag).")
@options("embedder", default="")
def command(arm: str, folder: Path, out: str, seed: int, embedder: str) -> Printed:
    """Build the store of one ARM from a world's documents alone, without questions or expected answers.

    The folder contains records.jsonl, and arm.json with the arm's name, engine and notes.

    \b
    Example:
      kbgym baseline hipporag --world worlds-out/w0 --out stores/b3
      kbgym exam stores/b3 --world worlds-out/w0 --set test_in
    """
    chosen, world = arm_named(arm), World.load(folder)
    started = time.perf_counter()
    built = build_arm(arm, world, lambda: embedder_named(embedder), seed)
    seconds = time.perf_counter() - started
    about = {
        "arm": arm,
        "engine": chosen.engine or search_named(search_of(world)),
        **({"observations": chosen.observations} if chosen.observations else {}),
        "seed": seed,
        "tokens": built.tokens,
        "notes": built.notes,
    }
    save_store(built.store, out, pretty({**about, "world": world.hash}))
    share = coverage(built.store).direct
    authored = sum(record.flag == "authored" for record in built.store)
    result = {
        **about,
        "documents": len(built.store),
        "authored": authored,
        "links": built.store.links,
        "coverage": round(share, 4),
        "seconds": round(seconds, 3),
    }
    text = (
        f"{shown(out)}: {chosen.label}, {len(built.store):,} documents ({authored:,} of them written by the arm) and "
        f"{built.store.links:,} links, covering {share:.1%} of the originals; built in {seconds:.1f} s."
    )
    return result, text
