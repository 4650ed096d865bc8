"""Options, progress bars and output shared by all verbs.

A verb returns a result for `--json` and a text for people.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kbgym.canonical import encode
from kbgym.cli.settings import Command, flags, options, own_flags
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.sanitize import counted, number_in, safe_json, safe_text
from kbgym.search.base import SearchKind
from kbgym.trace import is_url

if TYPE_CHECKING:  # keep imports few: agents that start a server wait for them
    from pathlib import Path

    from kbgym.worlds.world import World

Printed = tuple[dict[str, Any], str | Sequence[str]]  # for machines, for people
Verb = Callable[..., Printed | None]

# ProgressCallback(done, total, note): progress of long work; the note is shown after the bar.


class _StorePlace(click.Path):
    """A folder that exists, or the URL of a database."""

    name = "store"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return str(value) if is_url(value) else super().convert(value, param, ctx)


STORE = _StorePlace(exists=True, file_okay=False)


output_options = flags(
    click.option("--quiet", is_flag=True, help="No progress bar and no messages."),
    click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout."),
)
size_options = options("train", "test_in", "test_out", "eval_in", "eval_out")


def verb(
    name: str, under: click.Group | None = None, declared: str = "", **more: Any
) -> Callable[[Verb], click.Command]:
    """Decorate a function that returns a result and a text as a command with `--json` and `--quiet`.

    Its own flags are those that `flags.toml` declares under its name, or under `declared`.
    """

    def made(work: Verb) -> click.Command:
        given_flags = own_flags(declared or name)(work).__dict__.pop("__click_params__", [])

        @functools.wraps(work)
        def command(as_json: bool, quiet: bool, **given: Any) -> None:
            if printed := work(**given):
                emit(*printed)

        flagged = output_options(command)
        flagged.__click_params__ += given_flags  # type: ignore[attr-defined]
        return (under or click).command(name, **{"cls": Command, **more})(flagged)

    return made


def emit(result: Mapping[str, Any], text: str | Sequence[str]) -> None:
    """Print a result of the current verb: JSON for machines, or `text` for people.

    If it contains untrusted ids and texts, `text` is a list of lines, so that their content cannot start a new line.
    """
    wanted = click.get_current_context().params
    if wanted["as_json"]:
        try:
            data = encode(result)
        except UnicodeEncodeError:  # a file name that is not valid Unicode
            data = json.dumps(msgspec.to_builtins(result), sort_keys=True).encode()
        click.echo(safe_json(data))
    elif not wanted["quiet"]:
        lines = text.split("\n") if isinstance(text, str) else text
        click.echo("\n".join(safe_text(line) for line in lines))


def is_silent() -> bool:
    """Return True if the current verb prints only its result."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet") or context.params.get("as_json"))


def say(sentence: str | None) -> None:
    """Print a line for people on stderr, unless only the result is wanted."""
    if sentence and not is_silent():
        click.echo(sentence, err=True)


def seeds_in(text: str) -> tuple[int, ...]:
    """Return the numbers in `--seeds`: 0,1,2 or 0-4."""
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        first, last = number_in(low), number_in(high if dash else low)
        if first is None or last is None or last - first > 100_000:
            raise BadInput(f"--seeds takes numbers such as 0,1,2 or 0-4, not {text!r}.")
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def world_values(world: World) -> dict[str, Any]:
    """Return the result shared by all verbs that make a world."""
    counts = {"documents": len(world.documents), "questions": len(world.questions)}
    return {**counts, "splits": world.splits, "hash": world.hash}


def world_text(out: Path, world: World) -> str:
    counts = f"{counted(len(world.documents), 'document')}, {counted(len(world.questions), 'question')}"
    return f"{out}: {counts} ({splits_of(world) or 'none'}).\nhash {world.hash}"


def splits_of(world: World) -> str:
    return ", ".join(f"{name} {count}" for name, count in world.splits.items())


@contextlib.contextmanager
def progress(title: str) -> Iterator[ProgressCallback]:
    """Show a progress bar on stderr and yield its callback; without a terminal, yield one that does nothing."""
    if is_silent() or not sys.stderr.isatty():
        yield lambda done, total, note: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}", markup=False), console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, note="")
        yield lambda done, total, note: bar.update(task, completed=done, total=total, note=safe_text(note))


def with_search(world: World, search: SearchKind | None) -> World:
    """Return the world with its kind of search recorded in it."""
    return msgspec.structs.replace(world, facts={**world.facts, "search": search}) if search else world


def settings_given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that were given; `agent` stands for the reader and the curator."""
    given = {name: value for name, value in flags.items() if value is not None}
    agent = given.pop("agent", None)
    return {**({"reader": agent, "curator": agent} if agent is not None else {}), **given}
