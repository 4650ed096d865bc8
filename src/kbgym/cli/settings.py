"""Settings: values of a verb from `kbgym.toml`, an environment variable or `--set KEY=VALUE`.

`settings.toml` declares every setting, with its type and its line of help. A verb takes settings by name:

    @verb("train")
    @place("world")
    @options("agent", "epochs", "temperature")
    def command(agent, epochs, temperature): ...

A few settings are also flags in `--help` (`--agent`). The rest are hidden flags, which `--help-all` lists. A flag wins
over `--set`, `--set` over $KBGYM_KEY, and that over the `kbgym.toml` in the current folder.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from kbgym.cli import read_table
from kbgym.errors import BadInput

FILE = "kbgym.toml"
_GIVEN, _PROJECT, _ALL = "kbgym.set", "kbgym.project", "kbgym.help_all"
_TYPES: dict[str, Any] = {
    "text": str,
    "bool": bool,
    "int": int,
    "float": float,
    "folder": click.Path(path_type=Path),
    "file": click.Path(path_type=Path, dir_okay=False),
    "count": click.IntRange(min=1),
    "number": click.IntRange(min=0),
    "amount": click.FloatRange(min=0),
    "existing": click.Path(path_type=Path, exists=True),
    "directory": click.Path(path_type=Path, file_okay=False),
    "port": click.IntRange(0, 65535),
    "seconds": click.FloatRange(min=0.05),
}
F = TypeVar("F", bound=Callable[..., Any])


class SettingInfo(msgspec.Struct, frozen=True):
    """The entry of a setting in `settings.toml`; `table` is the table of `kbgym.toml` that it is written in."""

    help: str
    type: str | list[str] = "text"
    flag: bool = False
    default: Any = None
    table: str = ""


def _type(named: str | list[str]) -> Any:
    return click.Choice(named) if isinstance(named, list) else _TYPES[named]


KEYS = {
    key: msgspec.convert({**about, "table": "" if table == "project" else table}, SettingInfo)
    for table, entries in read_table("settings.toml").items()
    for key, about in entries.items()
}
_FLAGS = read_table("flags.toml")


def own_flags(verb: str) -> Callable[[F], F]:
    """Add the flags that `flags.toml` declares for a verb."""
    return flags(*(_flag(name, **about) for name, about in _FLAGS.get(verb, {}).items()))


def _flag(flag: str, **about: Any) -> Callable[[F], F]:
    type, given = about.pop("type", None), [f"--{flag}"]
    given += [about.pop(one) for one in ("short", "name") if one in about]
    about.setdefault("show_default", "default" in about)
    if type == "flag":
        return click.option(*given, is_flag=True, **about)
    return click.option(*given, type=_type(type) if type else None, **about)


# Values that run code or redirect an API key: a file may give them only if the user has accepted that file.
_GUARDED = ("agent", "reader", "curator", "judge", "base_url")


class Project(msgspec.Struct, frozen=True):
    """The `kbgym.toml` of a folder: its values by key; empty if there is no such file."""

    file: Path
    values: dict[str, Any] = {}

    @classmethod
    def load(cls, folder: Path) -> Project:
        """Read the file of a folder. Raise `BadInput` if it is not TOML or holds an unknown key."""
        file = folder / FILE
        if not file.is_file():
            return cls(file)
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{file} is not TOML: {error}.") from error
        values: dict[str, Any] = {}
        for name, value in found.items():
            table, entries = (name, value) if isinstance(value, dict) else ("", {name: value})
            for key, one in entries.items():
                if key not in KEYS or KEYS[key].table != table:
                    raise BadInput(f"{file} has an unknown key {key!r} in {f'[{table}]' if table else 'no table'}.")
                _check_value(file, key, one)
                values[key] = one
        return cls(file, values)

    def place(self, key: str) -> Any:
        """Return the place under a key, or None; before the run exists, return its world."""
        there = self.values.get(key)
        return self.values.get("world", there) if key == "run" and there and not Path(there).exists() else there

    def accepted(self, key: str) -> Any:
        """Return a value. Raise `BadInput` if it runs code or redirects requests and the user has not accepted it."""
        from kbgym.agents.trust import is_trusted

        value = self.values[key]
        named = _guarded(key, value)
        if named and not is_trusted(str(self.file.parent), named):
            raise BadInput(
                f"{self.file.name} sets {key} to {value!r}, which this user has not accepted; check the file, then "
                "run `kbgym init` here."
            )
        return value

    def accept(self) -> None:
        """Remember that the user accepts the agents and endpoints this file names."""
        from kbgym.agents.trust import remember

        guarded = (_guarded(key, self.values[key]) for key in _GUARDED if key in self.values)
        remember(str(self.file.parent), [name for name in guarded if name])


def _check_value(file: Path, key: str, value: object) -> None:
    """Raise `BadInput` if a value is not of the key's type."""
    parts = value if key == "documents" and isinstance(value, list) else [value]
    for part in parts:
        try:
            if not isinstance(part, str | int | float):
                raise click.BadParameter(f"{part!r} is not a single value.")
            click.types.convert_type(_type(KEYS[key].type)).convert(part, None, None)
        except click.BadParameter as error:
            raise BadInput(f"{file}: {key}: {error.message}") from error


def _guarded(key: str, value: object) -> str:
    """Return the name under which acceptance of a value is remembered, or "" if it requires none."""
    if key not in _GUARDED or (key != "base_url" and str(value).startswith("llm:")):
        return ""
    return f"base_url {value}" if key == "base_url" else str(value)


class Setting(click.Option):
    """An option whose value may also come from `--set`, the environment or `kbgym.toml`."""

    def __init__(self, declarations: list[str], *, key: str, **more: Any) -> None:
        self.key = key
        super().__init__(declarations, **more)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        found = None if self.name in opts else _given_elsewhere(self.key, ctx)
        return found or super().consume_value(ctx, opts)


def _given_elsewhere(key: str, ctx: click.Context) -> tuple[Any, ParameterSource] | None:
    """Return the value of a setting from sources other than a flag, and its source."""
    given, project = ctx.meta.get(_GIVEN, {}), project_of(ctx)
    if key in given:
        return given[key], ParameterSource.COMMANDLINE
    if value := os.environ.get(f"KBGYM_{key.upper()}"):
        return value, ParameterSource.ENVIRONMENT
    if key in project.values:
        return project.accepted(key), ParameterSource.DEFAULT_MAP
    return None


class PlaceArgument(click.Argument):
    """An argument that defaults to a value in `kbgym.toml`."""

    def __init__(self, declarations: list[str], *, key: str, **more: Any) -> None:
        self.key = key
        super().__init__(declarations, **more)


class Command(click.Command):
    """A verb. One with settings takes `--set KEY=VALUE`, and `--help-all` lists them."""

    def __init__(self, *names: Any, **more: Any) -> None:
        super().__init__(*names, **more)
        self.params.sort(key=lambda one: not one.required)
        self.settings = verb_settings(self)
        if not self.settings:
            return
        bare = "set" in self.settings
        early: dict[str, Any] = {"expose_value": False, "is_eager": True}
        shown: dict[str, Any] = {"metavar": "KEY=VALUE", "hidden": True}
        if bare:
            shown = {"metavar": "SET|KEY=VALUE", "help": f"{KEYS['set'].help[:-1]}; or a setting."}
        self.params += [
            click.Option(["--set"], multiple=True, callback=_read_sets, shell_complete=self._keys, **early, **shown),
            click.Option(["--help-all"], is_flag=True, hidden=True, callback=_help_all, **early),
        ]

    def _keys(self, ctx: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(f"{key}=") for key in self.settings if key.startswith(begun)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with a place from `kbgym.toml` if one argument is missing."""
        arguments = [one for one in self.params if isinstance(one, click.Argument)]
        place = next((one for one in arguments if isinstance(one, PlaceArgument)), None)
        if place is not None and (value := project_of(ctx).place(place.key)) is not None:
            given = self.make_parser(ctx).parse_args(list(args))[0]
            needed = [given.get(str(one.name)) for one in arguments if one.required or one is place]
            if any(not isinstance(one, str | tuple) or one == () for one in needed):
                values = value if isinstance(value, list) else [value]
                args = [*values, *args] if place is arguments[0] else [*args, *values]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        rows = [(key, one.help or "") for key, one in self.settings.items() if one.hidden and key != "set"]
        if not rows:
            return
        if ctx.meta.get(_ALL):
            with formatter.section(f"Settings (in {FILE}, as $KBGYM_KEY, by --set KEY=VALUE or --KEY VALUE)"):
                formatter.write_dl(rows)
        else:
            formatter.write_paragraph()
            formatter.write_text(f"{len(rows)} more settings by --KEY VALUE or {FILE}; --help-all lists them.")


def verb_settings(command: click.Command) -> dict[str, Setting]:
    """Return the settings of a verb by key."""
    return {one.key: one for one in command.params if isinstance(one, Setting)}


def project_of(ctx: click.Context) -> Project:
    """Return the project of the current folder, read once per command."""
    found: Project = ctx.meta.get(_PROJECT) or Project.load(Path.cwd())
    ctx.meta[_PROJECT] = found
    return found


def options(*keys: str, **more: Any) -> Callable[[F], F]:
    """Add settings to a verb by their keys; `more` overrides what `KEYS` says of them, such as `default`."""
    return flags(*(option(key, **more) for key in keys))


def option(key: str, *declarations: str, **more: Any) -> Callable[[F], F]:
    """Add one setting, optionally under other declarations than its own (`--out` for `run`)."""
    known = KEYS[key]
    name = {"training_questions": "questions", "set": "set_name"}.get(key, key)
    flag, hidden = f"--{name.replace('_', '-')}", not known.flag and not declarations
    chosen = {"type": _type(known.type), "help": known.help, **more}
    if hidden or known.default is not None:
        chosen.setdefault("default", known.default)
    if known.type == "bool":
        chosen |= {"type": None, "is_flag": True}
    if hidden:
        flag += f"/--no-{flag[2:]}" if known.type == "bool" else ""
        chosen["hidden"] = True
    return click.option(*(declarations or (flag, name)), cls=Setting, key=key, **chosen)


def flags(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Combine options into one decorator, in the order in which `--help` lists them."""

    def added(command: F) -> F:
        for one in reversed(options):
            command = one(command)
        return command

    return added


def place(metavar: str, key: str = "run", name: str = "place", **more: Any) -> Callable[[F], F]:
    """Add the argument for a STORE, RUN or WORLD; with a `kbgym.toml` it is optional."""
    return click.argument(name, metavar=metavar, cls=PlaceArgument, key=key, **more)


def _read_sets(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> None:
    assert isinstance(ctx.command, Command)
    known, given = ctx.command.settings, dict[str, str]()
    for text in values:
        key, equals, value = text.partition("=")
        key, value = (key.replace("-", "_"), value) if equals else ("set", text)
        if key not in known:
            if not equals:
                raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE.", ctx, option)
            near = difflib.get_close_matches(key, known, 1)
            more = f" Did you mean {near[0]!r}?" if near else ""
            raise click.BadParameter(f"there is no setting {key!r} here.{more}", ctx, option)
        given[key] = value
    ctx.meta[_GIVEN] = given


def _help_all(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()
