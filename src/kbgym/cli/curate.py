"""`kbgym curate --idle`: work the agenda off between questions, under the same tools, trace and gate."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from kbgym.cli.common import STORE, Tick, emit, output_options, progress, serving_options, serving_settings
from kbgym.errors import BadInput
from kbgym.online.learning import Online
from kbgym.online.setup import curate_idle, open_online
from kbgym.protocol.gate import MARGIN
from kbgym.trace.place import shown


@click.command("curate")
@click.argument("place", metavar="STORE", type=STORE)
@click.option("--idle", is_flag=True, help="Work off the agenda; no question is asked.")
@click.option("--budget", type=click.IntRange(min=1), default=300, show_default=True, help="At most so many actions.")
@click.option("--gate", type=click.IntRange(min=0), default=0, help="Admit edits only after re-asking N questions.")
@click.option("--margin", type=float, default=MARGIN, show_default=True, help="By how much F1 may fall at the gate.")
@click.option("--evidence", type=int, default=0, help="How many questions must be able to tell what edits do.")
@click.option("--held-out", type=click.Path(path_type=Path, dir_okay=False), help="Questions for the gate.")
@serving_options
@click.option("--embedder", help="all-MiniLM-L6-v2, or hash for tests.  [default: the store's]")
@output_options
def command(
    place: str,
    idle: bool,
    budget: int,
    gate: int,
    margin: float,
    evidence: int,
    held_out: Path | None,
    embedder: str | None,
    as_json: bool,
    quiet: bool,
    **who: Any,
) -> None:
    """Curate a STORE while nobody asks: index what its agenda holds, until the budget or the agenda is spent.

    \b
    Example:
      kbgym curate runs/first --idle --budget 120
    """
    if not idle:
        raise BadInput("say --idle: there is no other way to curate yet.")
    settings, trusted = serving_settings(place, {**who, "embedder": embedder})
    with progress("embedding", quiet or as_json) as tick:
        online = open_online(place, settings, embedder, gate, margin, evidence, held_out, tick, trusted)
    owner = online.owner
    documents, links = len(owner.store), owner.store.links
    with progress("curating", quiet or as_json) as tick:
        passes, actions = asyncio.run(_curate(online, budget, tick))
    result = {
        "passes": passes,
        "actions": actions,
        "admitted": online.admitted,
        "rolled_back": online.refused,
        "documents_added": len(owner.store) - documents,
        "links_added": owner.store.links - links,
        "open": len(online.desk.items(owner.store)),
        "iteration": owner.iteration,
    }
    text = (
        f"{shown(place)}: {passes} idle passes, {actions} actions; {result['documents_added']} documents and "
        f"{result['links_added']} links more, {online.refused} passes rolled back; {result['open']} things stay open."
    )
    emit(result, as_json, quiet, text)


async def _curate(online: Online, budget: int, tick: Tick) -> tuple[int, int]:
    try:
        return await curate_idle(online, budget, tick)
    finally:
        await online.owner.close()
