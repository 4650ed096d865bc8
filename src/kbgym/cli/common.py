"""What every verb shares: `--json`, `--quiet`, a progress bar, and how a result is printed."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kbgym.agents.trust import allowed
from kbgym.canonical import encode
from kbgym.characters import safe_json, safe_text
from kbgym.errors import BadInput
from kbgym.protocol.run import Settings
from kbgym.trace.place import is_url, shown

F = TypeVar("F", bound=Callable[..., Any])

# Tick(done, total, note): what long work calls as it goes; the note is shown behind the bar.
Tick = Callable[[int, int, str], None]


class _StorePlace(click.Path):
    """A folder that exists, or the URL of a database."""

    name = "store"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return str(value) if is_url(value) else super().convert(value, param, ctx)


STORE = _StorePlace(exists=True, file_okay=False)


def output_options(command: F) -> F:
    """Add `--json` and `--quiet`."""
    command = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")(command)
    return click.option("--quiet", is_flag=True, help="No progress bar and no messages.")(command)


def emit(result: Mapping[str, Any], as_json: bool, quiet: bool, text: str | Sequence[str]) -> None:
    """Print a verb's result: JSON for machines, or `text` for people.

    Where a stranger's ids and texts stand in it, `text` is a list of lines: what they hold cannot begin another.
    """
    if as_json:
        click.echo(safe_json(encode(result)))
    elif not quiet:
        lines = text.split("\n") if isinstance(text, str) else text
        click.echo("\n".join(safe_text(line) for line in lines))


@contextlib.contextmanager
def progress(title: str, quiet: bool = False) -> Iterator[Tick]:
    """A bar on stderr; with `quiet`, or where stderr is no terminal, a function that does nothing."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, total, note: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}", markup=False), console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, note="")
        yield lambda done, total, note: bar.update(task, completed=done, total=total, note=safe_text(note))


def agent_options(command: F) -> F:
    """Add `--agent` and the flags that override one role."""
    command = click.option("--judge", help="Who decides what is a duplicate.  [default: rule]")(command)
    command = click.option("--curator", help="Overrides --agent for the curator.")(command)
    command = click.option("--reader", help="Overrides --agent for the reader.")(command)
    return click.option(
        "--agent", help="reference, llm:PROVIDER/MODEL, cassette:FILE or MODULE:NAME.  [default: reference]"
    )(command)


def serving_options(command: F) -> F:
    """Add who plays on a store that exists, and whether what its folder says of that may be believed."""
    trust = "Let the folder's own agents play, now and later."
    command = click.option("--trust", is_flag=True, help=trust)(command)
    command = click.option("--judge", help="Who decides what is a duplicate.  [default: the run's]")(command)
    command = click.option("--curator", help="Who edits.  [default: the run's]")(command)
    return click.option("--reader", help="Who answers.  [default: the run's]")(command)


def serving_settings(place: str, flags: Mapping[str, Any]) -> tuple[Settings, frozenset[str]]:
    """The settings of a store with what the flags say instead, and which of their agents may play."""
    from kbgym.online.learning import settings_of

    roles = ("reader", "curator", "judge")
    settings = settings_of(place, **{name: value for name, value in flags.items() if name != "trust"})
    names = [getattr(settings, role) for role in roles]
    return settings, allowed(shown(place), names, [flags[role] for role in roles], flags["trust"])


def settings_from(config: Path | None, flags: Mapping[str, Any], questions: int | None = None) -> Settings:
    """Defaults, then the TOML file, then the flags that were given; never more questions than there are by default."""
    chosen: dict[str, Any] = {}
    if config is not None:
        try:
            chosen = tomllib.loads(config.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{config} is not TOML: {error}.") from error
    if questions is not None:
        chosen = {"questions": min(Settings().questions, questions), **chosen}
    given = {name: value for name, value in flags.items() if value is not None}
    agent = given.pop("agent", chosen.pop("agent", None))
    if agent is not None:
        chosen = {"reader": agent, "curator": agent, **chosen}
    try:
        return msgspec.convert({**chosen, **given}, Settings, strict=True)
    except msgspec.ValidationError as error:
        raise BadInput(f"bad settings: {error}.") from error
