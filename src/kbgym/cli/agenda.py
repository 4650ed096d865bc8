"""`kbgym agenda`: what is worth indexing next, worked out from the trace and nothing else."""

from __future__ import annotations

import click

from kbgym.api import open
from kbgym.api.factory import agenda_for
from kbgym.cli.common import Printed, verb
from kbgym.serving.learning.agenda import AgendaFollower, Item
from kbgym.trace.replay import replaying

_WORDS = {
    "changed": "its facts changed",
    "unfinished": "unfinished",
    "not indexed": "named, not indexed",
    "sibling": "of a kind that is asked for",
}


@verb("agenda")
@click.argument("place", metavar="STORE")
def command(place: str) -> Printed:
    """What a STORE's trace says is worth doing: indexes whose facts changed or that are unfinished, keys that questions
    named and nobody indexed, and their siblings. Best first.

    \b
    Example:
      kbgym agenda runs/first
    """
    with open(place) as opened:
        desk = AgendaFollower(agenda_for(opened.settings, opened.world))
        items = desk.items(opened.place.store(watch=replaying([desk])))
    counts = {what: sum(item.what == what for item in items) for what in _WORDS}
    text = "\n".join(_line(item) for item in items) or f"{opened.name}: nothing is open."
    return {"items": items, "counts": counts}, text


def _line(item: Item) -> str:
    key = f"{item.kind} {item.value}" + (f", {item.then}" if item.then else "")
    index = f" [{item.index}]" if item.index else ""
    known = f", {item.known} documents {'changed' if item.what == 'changed' else 'known'}" if item.known else ""
    return f"{_WORDS[item.what]:<28} {key}{index}{known}"
