"""`kbgym replay`: rebuild a store from its trace, verifying every recorded result and every snapshot."""

from __future__ import annotations

import time
from typing import Any

import click

from kbgym.artefact import open
from kbgym.canonical import encode
from kbgym.cli.common import Printed, verb
from kbgym.errors import BadInput, Damaged
from kbgym.trace.events import Event
from kbgym.trace.snapshots import SnapshotCheck


@verb("replay")
@click.argument("place", metavar="STORE")
@click.option("--at", type=int, metavar="N", help="Stop after iteration N (STORE@N says the same); 0 is the start.")
def command(place: str, at: int | None) -> Printed:
    """Rebuild a store from its trace and verify every recorded result.

    Nothing is searched, embedded or judged again. Damage is named by line, and the exit code is 2. In a database the
    tables are compared with what the trace says too.

    \b
    Examples:
      kbgym replay runs/first
      kbgym replay runs/first --at 57 --json
    """
    started = time.perf_counter()
    events = 0
    try:
        with open(place) as opened:
            if (reading := opened.place.reading) is None:
                raise BadInput(f"{opened.name} has no trace to replay.")
            snapshots = SnapshotCheck(opened.folder)

            def watch(event: Event, store: Any) -> None:
                nonlocal events
                events += 1
                snapshots(event, store)

            store = opened.place.store(at, watch)
            opened.place.verify()
    except Damaged as damage:
        if click.get_current_context().params["as_json"]:
            click.echo(encode({"identical": False, "events": events, "problem": str(damage)}))
        raise
    seconds = time.perf_counter() - started
    result = {
        "identical": True,
        "events": events,
        "hash": store.fingerprint,
        "seconds": round(seconds, 3),
        "documents": len(store),
        "links": store.links,
        "snapshots": snapshots.checked,
        "dropped": reading.dropped,
    }
    lines = [
        f"{opened.name}: {events:,} events replayed in {seconds:.2f} s, every recorded result identical"
        + (f", {snapshots.checked} snapshots too." if snapshots.checked else "."),
        f"{len(store):,} documents, {store.links:,} links, hash {store.fingerprint}",
    ]
    if reading.dropped:
        lines.append(f"Left out, never committed: {reading.dropped}.")
    return result, "\n".join(lines)
