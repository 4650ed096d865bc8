"""`kbgym baseline`: the store one arm makes of a world's documents."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kbgym.analysis.coverage import coverage
from kbgym.artefact.parts import embedder_named
from kbgym.baselines import ARMS, arm_named, build_arm
from kbgym.canonical import pretty
from kbgym.cli.common import Printed, verb
from kbgym.search.choice import search_named
from kbgym.trace.copying import save_store
from kbgym.trace.place import shown
from kbgym.worlds.kinds import search_of
from kbgym.worlds.world import World


@verb("baseline", epilog="\b\nArms:\n" + "\n".join(f"  {a.name:13} {a.description}" for a in ARMS.values()))
@click.argument("arm")
@click.option("--world", "folder", required=True, type=click.Path(path_type=Path), help="Whose documents.")
@click.option("--out", required=True, metavar="STORE", help="The folder or postgresql:// URL to write.")
@click.option("--seed", default=0, show_default=True, help="Decides ties where an arm has any (graphrag).")
@click.option("--embedder", default="", help="What raptor clusters with.  [default: all-MiniLM-L6-v2]")
def command(arm: str, folder: Path, out: str, seed: int, embedder: str) -> Printed:
    """Build the store of one ARM from a world's documents: no question, no gold, no model.

    The folder holds records.jsonl, and arm.json with the arm's name, its engine and what it noted.

    \b
    Example:
      kbgym baseline hipporag --world worlds/people --out stores/b3
      kbgym exam stores/b3 --world worlds/people --set test_in
    """
    chosen = arm_named(arm)
    world = World.load(folder)
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
