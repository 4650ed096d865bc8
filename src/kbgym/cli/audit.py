"""`kbgym audit`: the health of a store on one screen, for any world."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.analysis.audit import Audit, Index
from kbgym.analysis.health import Health, Suspect, advice, health
from kbgym.cli.common import emit, output_options
from kbgym.cli.main import VERBS
from kbgym.errors import BadInput
from kbgym.trace.place import Place, open_place, shown
from kbgym.worlds.world import World

SHOWN = 3
# Incomplete indexes, and members each misses, that are named on the screen; `--json` has them all.
INCOMPLETE, MISSING = 12, 5


@click.command("audit")
@click.argument("place", metavar="STORE")
@click.option("--world", "world_folder", type=click.Path(path_type=Path), help="The world of the store.  [a run's own]")
@output_options
def command(place: str, world_folder: Path | None, as_json: bool, quiet: bool) -> None:
    """Say how healthy a STORE is: coverage, what its indexes are worth, what is broken, what to do next.

    Indexes are scored where the world knows its facts; elsewhere links are only suspected, and the text says so.

    \b
    Example:
      kbgym audit runs/first
      kbgym audit stores/b3 --world worlds/w0 --json
    """
    folder = open_place(place)
    world = _world(folder, world_folder)
    began = {origin: record.text for record in folder.initial for origin in record.origins}
    found = health(folder.store(), world, tuple(began))
    emit(as_values(found, shown(place)), as_json, quiet, "\n".join(_screen(found, shown(place), began)))


def _world(folder: Place, given: Path | None) -> World | None:
    """The world named, else the one in the run, else the folder itself where it is a world."""
    places = [given] if given else [folder.folder / "world", folder.folder] if folder.folder else []
    place = next((one for one in places if given or (one / "documents.jsonl").is_file()), None)
    if place is None:
        return None
    world = World.load(place)
    known = {document.id for document in world.documents}
    stranger = next((origin for record in folder.initial for origin in record.origins if origin not in known), None)
    if stranger is not None:
        raise BadInput(f"{place} is not the world of {folder.name}: it has no document {stranger!r}.")
    return world


def as_values(found: Health, place: str) -> dict[str, Any]:
    """The result as plain JSON values; `precision` and `recall` are null where the world has no facts."""
    audit, total = found.audit, found.audit.total
    return {
        "coverage": found.coverage.direct,
        "readings": msgspec.to_builtins(found.coverage),
        "resolved": audit.resolved,
        "genuine": audit.count("genuine"),
        "stubs": audit.count("stub"),
        "materialised": audit.count("materialised"),
        "other": audit.count("other"),
        "precision": total.precision if total else None,
        "recall": total.recall if total else None,
        "kinds": [msgspec.to_builtins(row) for row in audit.table],
        "links": found.links,
        "suspected_links": [msgspec.to_builtins(suspect) for suspect in found.suspects],
        "orphans": found.ledger.orphans,
        "duplicates": found.duplicates,
        "same_texts": [list(group) for group in found.same_texts],
        "same_keys": [list(group) for group in found.same_keys],
        "lost_origins": found.ledger.lost_origins,
        "lost": list(found.lost),
        "incomplete": [_plain(index) for index in found.incomplete],
        "biggest": [_plain(index) for index in found.biggest],
        "ledger": msgspec.to_builtins(found.ledger),
        "next": [_line(one.sentence, one.command if one.verb in VERBS else "") for one in advice(found, place)],
    }


def _plain(index: Index) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(index)
    return plain


def _screen(found: Health, place: str, began: dict[str, str]) -> list[str]:
    counts, audit = found.ledger, found.audit
    lines = [
        f"{place}: {counts.documents:,} documents ({counts.authored:,} authored, {counts.edited:,} edited), "
        f"{counts.links:,} links, {counts.merged:,} merges",
        f"coverage       {_coverage(found)}",
        f"authored       {audit.count('genuine'):,} genuine indexes, {audit.count('stub'):,} stubs, "
        f"{audit.count('materialised'):,} materialised answers"
        + (f", {audit.count('other'):,} others (links, but no single key)" if audit.resolved else " (by their shape)"),
        f"links          {', '.join(f'{count:,} {ends}' for ends, count in found.links.items() if count) or 'none'}",
        f"broken         {counts.orphans:,} orphans, {found.duplicates:,} duplicates, "
        f"{counts.lost_origins:,} lost origins",
    ]
    lines += [f"  lost         {origin} {_short(began[origin])}" for origin in found.lost[:SHOWN]]
    for name, index in zip(("biggest", "", ""), found.biggest, strict=False):
        lines.append(f"{name:<14} {index.id} {_short(index.text)}, {index.degree} links")
    lines += ["", *_quality(audit)]
    lines += _links("wrong links" if audit.resolved else "suspected links", found.suspects)
    lines += _incomplete(found.incomplete, began)
    proposals = [_line(one.sentence, one.command if one.verb in VERBS else "") for one in advice(found, place)]
    return [*lines, "", "What to do next:", *(f"- {line}" for line in proposals or ["Nothing: all is in order."])]


def _coverage(found: Health) -> str:
    share = found.coverage
    text = f"{share.direct:.1%} of {found.ledger.origins:,} originals, {share.two_hops:.1%} within two hops"
    if share.confirmed is not None:
        text += f", {share.confirmed:.1%} by right links"
    if share.questions is not None:
        text += f"; {share.questions:.1%} of the questions in one read"
    return text


def _quality(audit: Audit) -> list[str]:
    if not audit.resolved:
        return ["No facts to score the indexes against: what follows is suspected, not known."]
    if not audit.table:
        return ["No index to score."]
    lines = [f"{'index of a':<18} {'n':>5} {'links':>7} {'precision':>10} {'recall':>8}"]
    for row in audit.table:
        lines.append(f"{row.group:<18} {row.n:>5,} {row.degree:>7.1f} {row.precision:>10.1%} {row.recall:>8.1%}")
    return lines


def _links(name: str, suspects: tuple[Suspect, ...]) -> list[str]:
    lines = [f"{name}: {len(suspects):,}"]
    for one in suspects[:SHOWN]:
        lines.append(f"  {one.index} {_short(one.index_text, 40)} -> {one.target} {_short(one.target_text)}")
    return lines


def _incomplete(indexes: tuple[Index, ...], began: dict[str, str]) -> list[str]:
    """Every incomplete index with what it misses: its own documents by their text, other members by name."""
    lines = [f"incomplete indexes: {len(indexes):,}"] if indexes else []
    for index in indexes[:INCOMPLETE]:
        missing = ", ".join(began.get(one, one) for one in index.missing[:MISSING])
        missing += f" and {more:,} more" if (more := len(index.missing) - MISSING) > 0 else ""
        lines.append(f"  {index.id} {_short(index.text, 40)} misses {len(index.missing)} of {index.members}: {missing}")
    if (more := len(indexes) - INCOMPLETE) > 0:
        lines.append(f"  and {more:,} more; --json names them all")
    return lines


def _short(text: str, most: int = 60) -> str:
    flat = " ".join(text.split())
    return f'"{flat if len(flat) <= most else flat[: most - 1] + "…"}"'


def _line(sentence: str, command: str) -> str:
    text = sentence[0].upper() + sentence[1:]
    return f"{text}: kbgym {command}" if command else f"{text}."
