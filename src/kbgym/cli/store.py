"""The `store` verb: search, read, count, export and copy a store; its history is in `history`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.api import open
from kbgym.cli import read_table
from kbgym.cli.common import Printed, progress, verb
from kbgym.cli.main import Verbs
from kbgym.cli.settings import options, place
from kbgym.errors import BadInput
from kbgym.store import ledger
from kbgym.store.export import FORMATS, export
from kbgym.trace import shown


@click.group("store", cls=Verbs, table="store")
def command() -> None:
    """Inspect, copy, verify and restore a store.

    STORE is the folder of a store, a run or a world, or postgresql://USER@HOST/DATABASE?store=NAME. STORE@57 is the
    store after iteration 57.

    \b
    Example:
      kbgym store search runs/first "people who live in Hamburg"
      kbgym store log runs/first
    """


@verb("search")
@place("STORE")
@click.argument("query")
@options("embedder", "search")
def search_command(place: str, query: str, page: int, **how: Any) -> Printed:
    """Search a store as an agent would.

    \b
    Example:
      kbgym store search runs/first "people who live in Hamburg" --page 2
    """
    with open(place, **how) as opened, progress("Embedding") as tick:
        hits = opened.search(query, page, tick)
    found = [{"id": hit.id, "text": hit.text, "score": round(hit.score, 6)} for hit in hits]
    text = [f"{hit.score:.3f} [{hit.id}] {hit.text}" for hit in hits] or ["Nothing found."]
    return {"page": page, "results": found}, text


@verb("read")
@place("STORE")
@click.argument("id", metavar="ID")
def read_command(place: str, id: str, with_source: bool) -> Printed:
    """Show a document with its links in both directions and its provenance.

    \b
    Example:
      kbgym store read runs/harbour n4
    """
    with open(place) as opened:
        store = opened.store
        if id not in store:
            raise BadInput(f"there is no document {id!r} in {opened.name}.")
        record = store[id]
        spans = opened.sources(record.origins) if with_source else {}
    links = [{"id": target, "text": store[target].text} for target in record.links]
    result: dict[str, Any] = {**msgspec.to_builtins(record), "flag": record.flag, "links": links}
    result["inbound"] = list(store.inbound(id))
    carried = f", carries {', '.join(record.origins)}" if record.origins else ""
    lines = [f"[{id}] {record.text}", f"  {record.flag}{carried}"]
    if with_source:
        result["sources"] = msgspec.to_builtins(spans)
        lines += [f"  {o} stands in {s.file}, characters {s.start} to {s.end}" for o, s in spans.items()]
        lines += [] if spans else ["  no source is known"]
    lines += [f"  -> [{target}] {store[target].text}" for target in record.links]
    lines += [f"  <- [{source}] {store[source].text}" for source in store.inbound(id)]
    return result, lines


@verb("stats")
@place("STORE")
def stats_command(place: str) -> Printed:
    """Count documents, links and provenance exactly.

    \b
    Example:
      kbgym store stats runs/first@57 --json
    """
    with open(place) as opened:
        store = opened.store
        counts, meaning = msgspec.to_builtins(ledger(store)), read_table("texts.toml")["ledger"]
        lines = [f"{name:<20} {count:>9,}  {meaning.get(name, '')}".rstrip() for name, count in counts.items()]
        result = {**counts, "hash": store.fingerprint}
    return result, "\n".join(lines)


@verb("export")
@place("STORE")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="jsonl", show_default=True)
def export_command(place: str, format_: str, out: Path) -> Printed:
    """Write a store for other programs: JSON lines or CSV, all or nothing.

    In CSV, text that a spreadsheet would read as a formula is prefixed with a quote.

    \b
    Example:
      kbgym store export runs/first --format csv --out first
    """
    with open(place) as opened:
        store = opened.store
    export(store, format_, out)
    result = {"out": str(out), "format": format_, "documents": len(store), "links": store.links}
    return result, f"{out}: {len(store):,} documents, {store.links:,} links."


@verb("copy")
@click.argument("source", metavar="STORE")
@click.argument("target", metavar="TARGET")
def copy_command(source: str, target: str) -> Printed:
    """Copy a STORE with its whole history to TARGET, a folder or a postgresql:// URL: the same trace, the same hash.

    Only the store is copied, not a run's questions and exams. A non-empty TARGET is refused.
     STORE@57 is copied with its history up to iteration 57.

    \b
    Examples:
      kbgym store copy runs/first "postgresql://ada@db.example.org/knowledge?store=first"
      kbgym store copy "postgresql://ada@db.example.org/knowledge?store=first" stores/again
    """
    from kbgym.trace.backend import copy_store

    with progress("copying") as tick:
        copied = copy_store(source, target, tick)
    counts = f"{copied.documents:,} documents, {copied.links:,} links, {copied.events:,} events"
    text = f"{shown(target)}: {counts}, hash {copied.hash}."
    return {"out": shown(target), **msgspec.to_builtins(copied)}, text
