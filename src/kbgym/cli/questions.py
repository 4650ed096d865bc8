"""`kbgym questions suggest`: a model drafts questions over your documents, for you to approve."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from kbgym.agents.llm.connect import is_model
from kbgym.canonical import digest, write_whole
from kbgym.cli.common import Printed, progress, verb
from kbgym.cli.settings import options
from kbgym.cli.spending import Spending, spending_options, with_spend
from kbgym.corpus.documents import ReadingOptions
from kbgym.corpus.drafting import COMPLETION, suggest, written
from kbgym.corpus.importing import make
from kbgym.errors import BadInput
from kbgym.worlds.world import World


@click.group("questions")
def command() -> None:
    """Draft questions over your documents."""


@verb("suggest", command)
@click.argument("places", metavar="WORLD_OR_PATHS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@options("language", default="en")
@spending_options
def suggest_command(
    places: tuple[Path, ...], agent: str, count: int, out: Path, seed: int, language: str, **flags: Any
) -> Printed:
    """Draft questions with answers and supports from a world, or from the files it would be imported from.

    Every answer occurs verbatim in a sentence that the draft cites; other drafts and duplicates are dropped. A draft is
    used only after approval by a person: write yes in the column `approve` of the drafts you want.

    \b
    Example:
      kbgym questions suggest worlds/harbour --agent llm:openai/gpt-5-mini --n 20 --out drafts.csv --max-cost 1
      kbgym import corpus harbour/notes --questions drafts.csv --unit sentence --out worlds/drafted
    """
    spending = Spending(flags)
    if not is_model(agent):
        raise BadInput(f"--agent takes a model, llm:PROVIDER/MODEL or cassette:FILE, not {agent!r}.")
    if out.suffix.lower() != ".csv":
        raise BadInput(f"{out} does not end in .csv: drafts are written as CSV.")
    if out.exists():
        raise BadInput(f"{out} exists and may hold approvals; choose another --out.")
    if len(places) == 1 and (places[0] / "documents.jsonl").is_file():
        world = World.load(places[0])
    else:  # the world that an import of these paths makes
        world = make(places, None, ReadingOptions(language=language)).world
    cassette = out.with_name(f"{out.stem}.cassette.jsonl") if agent.startswith("llm:") else None
    with spending.models([agent], cassette) as models, progress("drafting") as tick:
        assert models is not None
        confirm = partial(spending.confirm_requests, agent, completion=COMPLETION)
        found = suggest(world, models, agent, count, seed, spending.concurrency, confirm, with_spend(tick, models))
    text = written(found.drafts)
    with write_whole(out) as scratch:
        scratch.write_text(text, encoding="utf-8", newline="")
    counts = {"drafts": len(found.drafts), "asked": found.asked, "dropped": found.dropped}
    result = {"out": str(out), **counts, "hash": digest(text.encode())}
    lines = [f"{out}: {len(found.drafts)} drafts from {found.asked} handfuls of documents."]
    lines += [f"  {number} dropped: {reason}" for reason, number in found.dropped.items()]
    if len(found.drafts) < count:
        lines.append(f"  {count} were asked for; these documents gave no more.")
    lines.append("Read them, write yes in the column `approve` of those you want, then: import corpus --questions.")
    return result, lines
