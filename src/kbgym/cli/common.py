"""What every verb shares: `--json`, `--quiet`, a progress bar, and how a result is printed.

A verb parses, calls, and gives what is to be printed: its result for machines and a text for people.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from kbgym.canonical import encode
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.sanitize import number_in, safe_json, safe_text
from kbgym.search.base import SEARCHES, SearchKind
from kbgym.trace.url import is_url, shown

if TYPE_CHECKING:  # an agent that starts a server waits for what is imported here
    from kbgym.training.run import Settings
    from kbgym.worlds.world import World

F = TypeVar("F", bound=Callable[..., Any])
Printed = tuple[dict[str, Any], str | Sequence[str]]  # for machines, for people
Verb = Callable[..., Printed | None]

# ProgressCallback(done, total, note): what long work calls as it goes; the note is shown behind the bar.


class _StorePlace(click.Path):
    """A folder that exists, or the URL of a database."""

    name = "store"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return str(value) if is_url(value) else super().convert(value, param, ctx)


STORE = _StorePlace(exists=True, file_okay=False)


def flags(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which `--help` lists them."""

    def added(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return added


output_options = flags(
    click.option("--quiet", is_flag=True, help="No progress bar and no messages."),
    click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout."),
)
agent_options = flags(
    click.option("--agent", help="reference, general, llm:PROVIDER/MODEL or MODULE:NAME.  [by the world]"),
    click.option("--reader", help="Overrides --agent for the reader."),
    click.option("--curator", help="Overrides --agent for the curator."),
    click.option("--judge", help="Who decides what is a duplicate.  [default: rule]"),
)
# How many questions each split of a made world has.
size_options = flags(
    click.option("--train", default=150, show_default=True, help="Training questions."),
    click.option("--test-in", default=100, show_default=True, help="Test questions of the trained templates."),
    click.option("--test-out", default=50, show_default=True, help="Test questions of the reserved templates."),
    click.option("--eval-in", default=20, show_default=True, help="Evaluation questions of the trained templates."),
    click.option("--eval-out", default=10, show_default=True, help="Evaluation questions of the reserved templates."),
)


def verb(name: str, under: click.Group | None = None, **more: Any) -> Callable[[Verb], click.Command]:
    """A command with `--json` and `--quiet`, made of a function that gives its result and its text."""

    def made(work: Verb) -> click.Command:
        given_flags = work.__dict__.pop("__click_params__", [])

        @functools.wraps(work)
        def command(as_json: bool, quiet: bool, **given: Any) -> None:
            if printed := work(**given):
                emit(printed[0], as_json, quiet, printed[1])

        flagged = output_options(command)
        flagged.__click_params__ += given_flags  # type: ignore[attr-defined]
        return (under or click).command(name, **more)(flagged)

    return made


def emit(result: Mapping[str, Any], as_json: bool, quiet: bool, text: str | Sequence[str]) -> None:
    """Print a verb's result: JSON for machines, or `text` for people.

    Where a stranger's ids and texts stand in it, `text` is a list of lines: what they hold cannot begin another.
    """
    if as_json:
        try:
            data = encode(result)
        except UnicodeEncodeError:  # a file's name that is no text
            data = json.dumps(msgspec.to_builtins(result), sort_keys=True).encode()
        click.echo(safe_json(data))
    elif not quiet:
        lines = text.split("\n") if isinstance(text, str) else text
        click.echo("\n".join(safe_text(line) for line in lines))


def is_silent() -> bool:
    """Whether the verb under way was asked for its result only."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet") or context.params.get("as_json"))


def say(sentence: str | None) -> None:
    """A line on stderr for people; nothing where only the result was asked for."""
    if sentence and not is_silent():
        click.echo(sentence, err=True)


def seeds_in(text: str) -> tuple[int, ...]:
    """`--seeds`: 0,1,2 or 0-4 as numbers."""
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        first, last = number_in(low), number_in(high if dash else low)
        if first is None or last is None or last - first > 100_000:
            raise BadInput(f"--seeds takes numbers such as 0,1,2 or 0-4, not {text!r}.")
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def world_values(world: World) -> dict[str, Any]:
    """What every verb that makes a world says of it."""
    counts = {"documents": len(world.documents), "questions": len(world.questions)}
    return {**counts, "splits": world.splits, "hash": world.hash}


def splits_of(world: World) -> str:
    return ", ".join(f"{name} {count}" for name, count in world.splits.items())


@contextlib.contextmanager
def progress(title: str, quiet: bool = False) -> Iterator[ProgressCallback]:
    """A bar on stderr; where that was not wanted, or stderr is no terminal, a function that does nothing."""
    if quiet or is_silent() or not sys.stderr.isatty():
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
    """A world that says itself what it is searched by."""
    return msgspec.structs.replace(world, facts={**world.facts, "search": search}) if search else world


forward_budget = click.option(
    "--forward-budget", type=click.IntRange(min=1), help="Actions a reader has.  [default: the world's, or 15]"
)


def search_options(command: F) -> F:
    """Add `--search` and `--per-source`."""
    command = click.option(
        "--per-source", type=click.IntRange(min=0), help="Results a page from one page of the source.  [default: any]"
    )(command)
    return click.option(
        "--search", type=click.Choice(SEARCHES), help="[default: as before; new: hybrid for real text, else vectors]"
    )(command)


serving_options = flags(
    click.option("--reader", help="Who answers.  [default: the run's]"),
    click.option("--curator", help="Who edits.  [default: the run's]"),
    click.option("--judge", help="Who decides what is a duplicate.  [default: the run's]"),
    click.option("--trust", is_flag=True, help="Let the folder's own agents play, now and later."),
)


def serving_settings(place: str, given: Mapping[str, Any]) -> tuple[Settings, frozenset[str]]:
    """The settings of a store with what the flags say instead, and which of their agents may play."""
    from kbgym.agents.trust import allowed
    from kbgym.api import open
    from kbgym.worlds.kinds import why_agent

    roles = ("reader", "curator", "judge")
    with open(place, **{name: value for name, value in given.items() if name != "trust"}) as opened:
        settings = opened.settings
        unnamed = not (given["reader"] and given["curator"])
        # A trace that lost everything is no new one, and says so when its events are asked for.
        if opened.is_new and unnamed and opened.world is not None and not opened.events:
            say(why_agent(opened.world))
    names = [getattr(settings, role) for role in roles]
    return settings, allowed(shown(place), names, [given[role] for role in roles], given["trust"])


def settings_given(config: Path | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The TOML file's settings, then the flags that were given; `agent` stands for the reader and the curator."""
    chosen: dict[str, Any] = {}
    if config is not None:
        import tomllib

        try:
            chosen = tomllib.loads(config.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{config} is not TOML: {error}.") from error
    given = {name: value for name, value in flags.items() if value is not None}
    agent = given.pop("agent", chosen.pop("agent", None))
    return {**({"reader": agent, "curator": agent} if agent is not None else {}), **chosen, **given}
