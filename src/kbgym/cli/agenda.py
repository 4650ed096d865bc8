"""`kbgym agenda`: what is worth indexing next, worked out from the trace and nothing else."""

from __future__ import annotations

import click
import msgspec

from kbgym.cli.common import emit, output_options
from kbgym.online.agenda_follower import Desk, Item
from kbgym.trace.place import open_place, shown

_WORDS = {
    "changed": "its facts changed",
    "unfinished": "unfinished",
    "not indexed": "named, not indexed",
    "sibling": "of a kind that is asked for",
}


@click.command("agenda")
@click.argument("place", metavar="STORE")
@output_options
def command(place: str, as_json: bool, quiet: bool) -> None:
    """What a STORE's trace says is worth doing: indexes whose facts changed or that are unfinished, keys that questions
    named and nobody indexed, and their siblings. Best first.

    \b
    Example:
      kbgym agenda runs/first
    """
    folder, desk = open_place(place), Desk()
    store = folder.store(watch=desk)
    items = desk.items(store)
    counts = {what: sum(item.what == what for item in items) for what in _WORDS}
    text = [_line(item) for item in items] or [f"{shown(place)}: nothing is open."]
    emit({"items": msgspec.to_builtins(items), "counts": counts}, as_json, quiet, text)


def _line(item: Item) -> str:
    key = f"{item.kind} {item.value}" + (f", {item.then}" if item.then else "")
    index = f" [{item.index}]" if item.index else ""
    known = f", {item.known} documents {'changed' if item.what == 'changed' else 'known'}" if item.known else ""
    return f"{_WORDS[item.what]:<28} {key}{index}{known}"
