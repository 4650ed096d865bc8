"""`kbgym curate --idle`: work the agenda off between questions, under the same tools, trace and gate."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import click

from kbgym.cli.common import STORE, Printed, progress, serving_options, verb
from kbgym.cli.gating import gate_options, opened_online
from kbgym.cli.spending import spending_options
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.setup import curate_idle
from kbgym.trace.url import shown
from kbgym.training.run import Settings


@verb("curate")
@click.argument("place", metavar="STORE", type=STORE)
@click.option("--idle", is_flag=True, help="Work off the agenda; no question is asked.")
@click.option("--budget", type=click.IntRange(min=1), default=300, show_default=True, help="At most so many actions.")
@gate_options
@serving_options
@spending_options
@click.option("--embedder", help="all-MiniLM-L6-v2, or hash for tests.  [default: the store's]")
def command(place: str, idle: bool, budget: int, **flags: Any) -> Printed:
    """Curate a STORE while nobody asks: index what its agenda holds, until the budget or the agenda is spent.

    \b
    Example:
      kbgym curate runs/first --idle --budget 120
    """
    if not idle:
        raise BadInput("say --idle: there is no other way to curate yet.")
    with contextlib.ExitStack() as held:
        with progress("embedding") as tick:
            online = held.enter_context(opened_online(place, flags, -(-budget // Settings().backward_budget), tick))
        live = online.live
        documents, links = len(live.store), live.store.links
        with progress("curating") as tick:
            passes, actions = asyncio.run(_curate(online, budget, tick))
    result = {
        "passes": passes,
        "actions": actions,
        "admitted": online.admitted,
        "rolled_back": online.refused,
        "documents_added": len(live.store) - documents,
        "links_added": live.store.links - links,
        "open": len(online.desk.items(live.store)),
        "iteration": live.iteration,
    }
    text = (
        f"{shown(place)}: {passes} idle passes, {actions} actions; {result['documents_added']} documents and "
        f"{result['links_added']} links more, {online.refused} passes rolled back; {result['open']} things stay open."
    )
    return result, text


async def _curate(online: Online, budget: int, tick: ProgressCallback) -> tuple[int, int]:
    try:
        return await curate_idle(online, budget, tick)
    finally:
        await online.live.close()
