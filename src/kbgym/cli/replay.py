"""`kbgym replay`: rebuild a store from its trace, verifying every recorded result and every snapshot."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.api import open
from kbgym.canonical import encode
from kbgym.cli.common import Printed, verb
from kbgym.errors import BadInput, Damaged
from kbgym.trace.events import Event
from kbgym.trace.folder import TRACE
from kbgym.trace.recovery import Recovered, SnapshotCheck, recover
from kbgym.trace.url import is_url


@verb("replay")
@click.argument("place", metavar="STORE")
@click.option("--at", type=int, metavar="N", help="Stop after iteration N (STORE@N says the same); 0 is the start.")
@click.option("--recover", "mend", is_flag=True, help="First cut a damaged trace to what is whole, keeping it beside.")
def command(place: str, at: int | None, mend: bool) -> Printed:
    """Rebuild a store from its trace and verify every recorded result.

    Nothing is searched, embedded or judged again. Damage is named by line, and the exit code is 2; it is 1 where the
    trace is shorter than what was committed.

    \b
    Examples:
      kbgym replay runs/first
      kbgym replay runs/first --at 57 --json
      kbgym replay runs/first --recover
    """
    started = time.perf_counter()
    events = 0
    mended = _mend(place) if mend else None
    try:
        with open(place) as opened:
            reading = opened.place.reading
            if reading is None and mended is not None:
                text = f"{opened.name}: nothing of its trace was whole; it is as it began. See {mended.damaged}."
                return {"identical": True, "events": 0, "recovered": msgspec.to_builtins(mended)}, text
            if reading is None:
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
    result: dict[str, Any] = {
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
    if mended is not None:
        result["recovered"] = msgspec.to_builtins(mended)
        lost = "" if mended.lost is None else f", {mended.lost} iterations were lost"
        lines.append(f"Kept up to iteration {mended.iteration}{lost}; the damaged files are in {mended.damaged}.")
    if reading.dropped:
        lines.append(f"Left out, never committed: {reading.dropped}.")
    return result, lines


def _mend(place: str) -> Recovered | None:
    if is_url(place):
        raise BadInput("--recover is for folders; a database looks after its own files.")
    return recover(Path(place) / TRACE)
