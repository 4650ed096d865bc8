"""`kbgym store search|read|stats|export|copy`: look at a store, and take it elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kbgym.characters import number_in
from kbgym.cli.common import emit, output_options, progress
from kbgym.errors import BadInput
from kbgym.store import Ledger, Store, ledger
from kbgym.store.export import FORMATS, export
from kbgym.tools import PAGE_SIZE
from kbgym.trace.place import Place, is_url, open_place, shown

if TYPE_CHECKING:
    from kbgym.search.embed import CachedEmbedder


@click.group("store")
def command() -> None:
    """Search, read, count, export or copy a store.

    STORE is a folder of a store, a run or a world, or postgresql://USER@HOST/DATABASE?store=NAME; STORE@57 is what it
    was after iteration 57.

    \b
    Example:
      kbgym store search runs/first "people who live in Hamburg"
    """


@command.command("search")
@click.argument("place", metavar="STORE")
@click.argument("query")
@click.option("--page", default=1, show_default=True, type=click.IntRange(min=1), help="Five documents a page.")
@output_options
def search_command(place: str, query: str, page: int, as_json: bool, quiet: bool) -> None:
    """The documents most similar to a query, as an agent would find them.

    \b
    Example:
      kbgym store search runs/first "people who live in Hamburg" --page 2
    """
    from kbgym.search.choice import engine_of
    from kbgym.trace.postgres.vectors import stored_engine

    folder = open_place(place)
    store = folder.store()
    with progress("Embedding", quiet or as_json) as tick:
        engine = stored_engine(folder, _embedder(folder), tick) if is_url(place) else None
        if engine is None:
            engine = engine_of(((record.id, record.text) for record in store), _embedder(folder), tick)
    hits = engine.search(query, (page - 1) * PAGE_SIZE, PAGE_SIZE)
    found = [{"id": id, "text": store[id].text, "score": round(float(score), 6)} for id, score in hits]
    text = [f"{score:.3f} [{id}] {store[id].text}" for id, score in hits] or ["Nothing found."]
    emit({"page": page, "results": found}, as_json, quiet, text)


def _embedder(folder: Place) -> CachedEmbedder:
    """The embedder the trace was written with; the default one where there is no trace."""
    from kbgym.search.embed import CachedEmbedder, HashEmbedder, default_embedder

    name = folder.genesis.embedder if folder.genesis else ""
    if name.partition("-")[0] == "hash":
        size = number_in(name.partition("-")[2] or "256")
        if size is None or not 1 <= size <= 4_096:
            raise BadInput(f"{folder.name} was written with {name[:40]!r}, which is no embedder.")
        return CachedEmbedder(HashEmbedder(size))
    return default_embedder()


@command.command("read")
@click.argument("place", metavar="STORE")
@click.argument("id", metavar="ID")
@click.option("--source", "with_source", is_flag=True, help="Also say where in the original files it stands.")
@output_options
def read_command(place: str, id: str, with_source: bool, as_json: bool, quiet: bool) -> None:
    """A document with everything it links to, what links to it, and its provenance.

    \b
    Example:
      kbgym store read runs/first n12
    """
    folder = open_place(place)
    store = folder.store()
    if id not in store:
        raise BadInput(f"there is no document {id!r} in {shown(place)}.")
    record = store[id]
    result: dict[str, Any] = {
        **msgspec.to_builtins(record),
        "flag": record.flag,
        "links": [{"id": target, "text": store[target].text} for target in record.links],
        "inbound": list(store.inbound(id)),
    }
    carried = f", carries {', '.join(record.origins)}" if record.origins else ""
    lines = [f"[{id}] {record.text}", f"  {record.flag}{carried}"]
    if with_source:
        spans = folder.sources(record.origins)
        result["sources"] = msgspec.to_builtins(spans)
        lines += [f"  {o} stands in {s.file}, characters {s.start} to {s.end}" for o, s in spans.items()]
        lines += [] if spans else ["  no source is known"]
    lines += [f"  -> [{target}] {store[target].text}" for target in record.links]
    lines += [f"  <- [{source}] {store[source].text}" for source in store.inbound(id)]
    emit(result, as_json, quiet, lines)


_MEANING: dict[str, str] = {
    "lost_origins": "original facts no living document carries",
    "duplicated_origins": "original facts more than one document carries",
    "orphans": "authored, no link in or out",
    "empty_indexes": "authored, no outgoing link",
    "same_texts": "documents that repeat another's text",
}


@command.command("stats")
@click.argument("place", metavar="STORE")
@output_options
def stats_command(place: str, as_json: bool, quiet: bool) -> None:
    """The ledger: exact counts of documents, links and provenance; and the index a search runs on.

    \b
    Example:
      kbgym store stats runs/first@100 --json
    """
    opened = open_place(place)
    store = opened.store()
    counts: Ledger = ledger(store)
    result = {**msgspec.to_builtins(counts), "hash": store.fingerprint}
    lines = [f"{name:<20} {count:>9,}  {_MEANING.get(name, '')}".rstrip() for name, count in _counts(counts)]
    if opened.folder is not None:
        result["index"] = index = _index(opened, store)
        lines.append(f"{'index':<20} {index['kind']:>9}" + _measured(index))
    emit(result, as_json, quiet, lines)


def _index(place: Place, store: Store) -> dict[str, Any]:
    """What the store is searched with; only a large one has files to open and measure."""
    from kbgym.search.recall import described

    name = place.genesis.embedder if place.genesis else ""
    known = {"": "all-MiniLM-L6-v2", "hash": "hash-256"}.get(name, name)
    return dict(described([record.id for record in store], [record.text for record in store], known))


def _measured(index: dict[str, Any]) -> str:
    if index["kind"] == "exact":
        return ""
    if "bytes" not in index:
        return "  its files are not there yet: the first search makes them"
    return f"  recall@5 {index['recall@5']:.3f}, recall@60 {index['recall@60']:.3f}, {index['bytes'] / 1e6:,.0f} MB"


def _counts(counts: Ledger) -> list[tuple[str, int]]:
    return [(name, getattr(counts, name)) for name in counts.__struct_fields__]


@command.command("export")
@click.argument("place", metavar="STORE")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="jsonl", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A file; for csv a folder.")
@click.option("--formulas", is_flag=True, help="CSV as it is, also what a spreadsheet would carry out.")
@output_options
def export_command(place: str, format_: str, out: Path, formulas: bool, as_json: bool, quiet: bool) -> None:
    """Write a store for other programs: JSON lines, GraphML or CSV, all or nothing.

    In CSV a quote goes before what a spreadsheet would take for a formula, unless --formulas is said.

    \b
    Example:
      kbgym store export runs/first --format graphml --out first.graphml
    """
    store = open_place(place).store()
    export(store, format_, out, formulas)
    result = {"out": str(out), "format": format_, "documents": len(store), "links": store.links}
    emit(result, as_json, quiet, f"{out}: {len(store):,} documents, {store.links:,} links.")


@command.command("copy")
@click.argument("source", metavar="STORE")
@click.argument("target", metavar="TARGET")
@output_options
def copy_command(source: str, target: str, as_json: bool, quiet: bool) -> None:
    """Copy a STORE with its whole history to TARGET, a folder or a postgresql:// URL: the same trace, the same hash.

    Only the store is copied: a run's questions, exams and snapshots stay where they are. A TARGET that holds anything
    is refused. STORE@57 is copied with its history up to iteration 57.

    \b
    Examples:
      kbgym store copy runs/first postgresql://ada@db.example.org/knowledge?store=first
      kbgym store copy postgresql://ada@db.example.org/knowledge?store=first stores/again
    """
    from kbgym.trace.copying import copy_store

    with progress("copying", quiet or as_json) as tick:
        copied = copy_store(source, target, tick)
    text = (
        f"{shown(target)}: {copied.documents:,} documents, {copied.links:,} links, {copied.events:,} events, "
        f"hash {copied.hash}."
    )
    emit({"out": shown(target), **msgspec.to_builtins(copied)}, as_json, quiet, text)
