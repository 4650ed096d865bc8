"""Settings: values of a verb from `kbgym.toml`, an environment variable or `--set KEY=VALUE`.

The table `KEYS` defines every setting, with its type and its line of help. A verb takes settings by name:

    @verb("train")
    @place("world")
    @options("agent", "epochs", "temperature")
    def command(agent, epochs, temperature): ...

A few settings are also flags (`--agent`). The rest are listed by `--help-all`, and `--key VALUE` is short for
`--set KEY=VALUE`. A flag wins over `--set`, `--set` over $KBGYM_KEY, and that over the `kbgym.toml` in the current
folder.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from kbgym.errors import BadInput
from kbgym.search.base import SEARCHES

FILE = "kbgym.toml"
_GIVEN, _PROJECT, _ALL = "kbgym.set", "kbgym.project", "kbgym.help_all"
F = TypeVar("F", bound=Callable[..., Any])


class SettingInfo(NamedTuple):
    """A setting: the table of `kbgym.toml` it is written in, its help, its type, and whether it is also a flag."""

    table: str
    help: str
    type: Any = str
    flag: bool = False


_FOLDER, _INPUT = click.Path(path_type=Path), click.Path(path_type=Path, dir_okay=False)
_COUNT, _ANY, _AMOUNT = click.IntRange(min=1), click.IntRange(min=0), click.FloatRange(min=0)

KEYS: dict[str, SettingInfo] = {
    "documents": SettingInfo("", "Files and folders to import.", _FOLDER),
    "questions": SettingInfo("", "Questions with answers: CSV, JSON or JSONL.", _INPUT),
    "world": SettingInfo("", "The world folder.", _FOLDER, True),
    "run": SettingInfo("", "The run folder.", _FOLDER, True),
    "set": SettingInfo("", "Question set: a split, a probe group or a file."),
    "agent": SettingInfo("agents", "reference, general, llm:PROVIDER/MODEL, MODULE:NAME.  [by the world]", str, True),
    "reader": SettingInfo("agents", "Overrides `agent` for the reader."),
    "curator": SettingInfo("agents", "Overrides `agent` for the curator."),
    "judge": SettingInfo("agents", "Decides which documents are duplicates: rule or a model.  [rule]"),
    "search": SettingInfo(
        "search",
        "[default: the store's; for a new one hybrid on real text, else vectors]",
        click.Choice(SEARCHES),
        True,
    ),
    "embedder": SettingInfo(
        "search", "A model by name, a folder, st:NAME or openai:URL#MODEL; +RERANKER adds a reranker."
    ),
    "ranking": SettingInfo(
        "search", "How a page of results is filled: paper, apart or slot.", click.Choice(["paper", "apart", "slot"])
    ),
    "slots": SettingInfo("search", "Trained indexes shown beside the first page by the ranking slot.", _ANY),
    "slot_threshold": SettingInfo("search", "Lowest score of an index shown in a slot.", float),
    "observations": SettingInfo(
        "search", "How results read: paper or rich.  [rich for real text]", click.Choice(["paper", "rich"])
    ),
    "training_questions": SettingInfo("training", "Training questions.  [default: 100, or all]", _COUNT, True),
    "epochs": SettingInfo("training", "Times each question is asked.  [default: 2]", _COUNT, True),
    "seed": SettingInfo("training", "Seed for the order of the questions.  [default: 0]", int, True),
    "strategy": SettingInfo("training", "What the curator works on: paper or class.  [paper]"),
    "batch_size": SettingInfo("training", "Questions side by side.  [1]", _COUNT),
    "eval": SettingInfo("training", "Examine the eval split after every epoch.  [true]", bool),
    "store": SettingInfo("training", "Train the store at this postgresql:// URL.  [the run's own]"),
    "forward_budget": SettingInfo("budgets", "Actions of a reader.  [the world's, or 15]", _COUNT),
    "max_cost": SettingInfo("budgets", "Stop cleanly at this many dollars.", _AMOUNT, True),
    "max_tokens": SettingInfo("budgets", "Stop cleanly at this many tokens.", _ANY),
    "gate": SettingInfo("gate", "Re-ask N questions before edits stay.  [default: 0, off]", _ANY, True),
    "held_out": SettingInfo("gate", "A file of questions for the gate.", _INPUT),
    "base_url": SettingInfo("models", "Endpoint of llm:local/MODEL, or another endpoint of a provider."),
    "temperature": SettingInfo("models", "Sampling temperature.  [0.3]", float),
    "effort": SettingInfo("models", "Reasoning effort, where the model has one.  [low]"),
    "concurrency": SettingInfo("models", "Requests at a time.  [16]", _COUNT),
    "timeout": SettingInfo("models", "Seconds a request may take.  [120]", _AMOUNT),
    "usage_from": SettingInfo("models", "Path of the token usage in a command's JSON output."),
    "links": SettingInfo("import", "Links between the files become links of the store.", bool, True),
    "unit": SettingInfo("import", "What a document holds.  [passage]", click.Choice(["passage", "sentence"]), True),
    "structure": SettingInfo("import", "As --links; pages link to their sentences and to pages they name.", bool, True),
    "site": SettingInfo("import", "As --links; links to this address count as links between the files."),
    "about": SettingInfo("import", "Describes the documents in a sentence or two, for a model's prompt."),
    "language": SettingInfo("import", "Language of the texts, for splitting into sentences.  [en]"),
    "follow": SettingInfo("import", "Follow symbolic links out of the folder.  [false]", bool),
    "on_error": SettingInfo("import", "Unreadable files: refuse or skip.  [refuse]", click.Choice(["refuse", "skip"])),
    "train": SettingInfo("splits", "Training questions.  [150]", int),
    "test_in": SettingInfo("splits", "Test questions of the trained templates.  [100]", int),
    "test_out": SettingInfo("splits", "Test questions of the reserved templates.  [50]", int),
    "eval_in": SettingInfo("splits", "Evaluation questions of the trained templates.  [20]", int),
    "eval_out": SettingInfo("splits", "Evaluation questions of the reserved templates.  [10]", int),
    "depth": SettingInfo("benchmark", "Steps of the longest question, 1 to 5.  [3]", int),
    "breadth": SettingInfo("benchmark", "Mean number of people in a city, 5 to 500.  [20]", int),
    "passage": SettingInfo("benchmark", "Most facts in a document, 1 to 8.  [1]", int),
    "time": SettingInfo("benchmark", "Share of facts that later documents replace, 0.05 to 0.4.  [0.2]", float),
    "sources": SettingInfo("benchmark", "Sources, 1 to 3; several disagree on some facts.  [3]", int),
    "rounds": SettingInfo("benchmark", "Rounds of updates that the world carries, 0 to 5.  [2]", int),
    "wordings": SettingInfo("benchmark", "all, or open: without the held-out half.  [all]"),
    "round": SettingInfo("benchmark", "Write the world as it is after this round.  [0]", int),
    "client": SettingInfo("serving", "Name of the client in the trace, with --mcp.  [stdio]"),
    "question": SettingInfo("serving", "The question of this session, with --mcp --role reader."),
    "tokens": SettingInfo("serving", "The token file.  [tokens.jsonl in the store]", _INPUT),
    "expires": SettingInfo("serving", "Last day of a new token."),
    "cors": SettingInfo("serving", "Origins, separated by commas, whose pages may use the HTTP API."),
    "view": SettingInfo("serving", "Also serve the viewer, at /view/; for a folder, with --no-auth.  [false]", bool),
    "rate_limit": SettingInfo(
        "serving", "Requests per second per token; 0 means unlimited.  [default: 100]", _AMOUNT, True
    ),
    "max_sessions": SettingInfo("serving", "Sessions of each kind per token.  [default: 64]", _COUNT, True),
    "readers": SettingInfo("experiment", "Readers to examine every arm with, by comma, or `all`."),
    "hard": SettingInfo("experiment", "Generate hard worlds: larger classes, readers have eight actions.", bool),
    "trust": SettingInfo("experiment", "Let the agents an earlier --out names play, now and later.", bool),
    "engine": SettingInfo("engine", "Where to work: local or ray.  [local]"),
    "workers": SettingInfo("engine", "Ray workers.  [as many as cores]", _COUNT),
    "address": SettingInfo("engine", "Ray cluster: auto or ray://HOST:PORT.  [one started here]"),
}
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
        import tomllib

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
            click.types.convert_type(KEYS[key].type).convert(part, None, None)
        except click.BadParameter as error:
            raise BadInput(f"{file}: {key}: {error.message}") from error


def _guarded(key: str, value: object) -> str:
    """Return the name under which acceptance of a value is remembered, or "" if it requires none."""
    if key not in _GUARDED or (key != "base_url" and str(value).startswith("llm:")):
        return ""
    return f"base_url {value}" if key == "base_url" else str(value)


class Setting(click.Parameter):
    """A parameter without a flag: its value comes from `--set`, the environment or `kbgym.toml`."""

    param_type_name = "setting"

    def __init__(self, declarations: list[str], *, key: str, help: str = "", **more: Any) -> None:
        super().__init__(declarations, **more)
        self.key, self.help = key, help

    def _parse_decls(self, declarations: Sequence[str], expose_value: bool) -> tuple[str, list[str], list[str]]:
        return declarations[0], [], []

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Add nothing, because the command line has no argument for this parameter."""

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return f"setting {self.key!r}"

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        return _given_elsewhere(self.key, ctx) or super().consume_value(ctx, opts)


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


class SettingOption(click.Option):
    """A setting that is also a flag, which wins over the other sources."""

    def __init__(self, declarations: list[str], *, key: str, **more: Any) -> None:
        self.key = key
        super().__init__(declarations, **more)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        found = None if self.name in opts else _given_elsewhere(self.key, ctx)
        return found or super().consume_value(ctx, opts)


class PlaceArgument(click.Argument):
    """An argument that defaults to a value in `kbgym.toml`."""

    def __init__(self, declarations: list[str], *, key: str, **more: Any) -> None:
        self.key = key
        super().__init__(declarations, **more)


class Command(click.Command):
    """A verb. One with settings takes `--set KEY=VALUE`, and `--help-all` lists them."""

    def __init__(self, *names: Any, **more: Any) -> None:
        super().__init__(*names, **more)
        self.settings = verb_settings(self)
        if not self.settings:
            return
        bare = "set" in self.settings
        self.params += [
            click.Option(
                ["--set"],
                multiple=True,
                expose_value=False,
                is_eager=True,
                callback=_read_sets,
                shell_complete=lambda ctx, option, begun: [
                    CompletionItem(f"{key}=") for key in self.settings if key.startswith(begun)
                ],
                metavar="SET|KEY=VALUE" if bare else "KEY=VALUE",
                help=f"{KEYS['set'].help[:-1]}; or a setting." if bare else None,
                hidden=not bare,
            ),
            click.Option(
                ["--help-all"], is_flag=True, expose_value=False, is_eager=True, hidden=True, callback=_help_all
            ),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with a place from `kbgym.toml` if one argument is missing."""
        args = list(self.with_sets(args))
        arguments = [one for one in self.params if isinstance(one, click.Argument)]
        place = next((one for one in arguments if isinstance(one, PlaceArgument)), None)
        if place is not None and (value := project_of(ctx).place(place.key)) is not None:
            given = self.make_parser(ctx).parse_args(list(args))[0]
            needed = [given.get(str(one.name)) for one in arguments if one.required or one is place]
            if any(not isinstance(one, str | tuple) or one == () for one in needed):
                values = value if isinstance(value, list) else [value]
                args = [*values, *args] if place is arguments[0] else [*args, *values]
        return super().parse_args(ctx, args)

    def with_sets(self, args: list[str]) -> Iterator[str]:
        """Yield the arguments with `--key VALUE` of a setting that has no flag as `--set key=VALUE`."""
        rest = iter(args)
        for argument in rest:
            flag, equals, value = argument.partition("=")
            key = flag.removeprefix("--").replace("-", "_")
            off = key.removeprefix("no_")
            if argument == "--":
                yield from (argument, *rest)
            elif not flag.startswith("--") or not any(self._has_no_flag(one) for one in (key, off)):
                yield argument
            elif KEYS[off].type is bool:
                yield from ("--set", f"{off}={value if equals else str(off == key).lower()}")
            else:
                yield from ("--set", f"{key}={value if equals else next(rest, '')}")

    def _has_no_flag(self, key: str) -> bool:
        return key != "set" and isinstance(self.settings.get(key), Setting)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        rows = [
            (key, one.help or "") for key, one in self.settings.items() if isinstance(one, Setting) and key != "set"
        ]
        if not rows:
            return
        if ctx.meta.get(_ALL):
            with formatter.section(f"Settings (in {FILE}, as $KBGYM_KEY, by --set KEY=VALUE or --KEY VALUE)"):
                formatter.write_dl(rows)
        else:
            formatter.write_paragraph()
            formatter.write_text(f"{len(rows)} more settings by --KEY VALUE or {FILE}; --help-all lists them.")


def verb_settings(command: click.Command) -> dict[str, Setting | SettingOption]:
    """Return the settings of a verb by key."""
    return {one.key: one for one in command.params if isinstance(one, Setting | SettingOption)}


def project_of(ctx: click.Context) -> Project:
    """Return the project of the current folder, read once per command."""
    found: Project = ctx.meta.get(_PROJECT) or Project.load(Path.cwd())
    ctx.meta[_PROJECT] = found
    return found


def options(*keys: str, **more: Any) -> Callable[[F], F]:
    """Add settings to a verb by their keys; `more` overrides what `KEYS` says of them, such as `default`."""

    def added(command: F) -> F:
        for key in reversed(keys):
            command = _option(key, [], more)(command)
        return command

    return added


def option(key: str, *declarations: str, **more: Any) -> Callable[[F], F]:
    """Add one setting, optionally under other declarations than its own (`--out` for `run`)."""
    return lambda command: _option(key, list(declarations), more)(command)


def _option(key: str, declarations: list[str], more: dict[str, Any]) -> Callable[[F], F]:
    known = KEYS[key]
    name = {"training_questions": "questions", "set": "set_name"}.get(key, key)
    chosen = {"type": known.type, "help": known.help, **more}
    if not known.flag and not declarations:
        return click.option(name, cls=Setting, key=key, **chosen)  # type: ignore[arg-type]
    if known.type is bool:
        chosen |= {"type": None, "is_flag": True}
    flag = f"--{name.replace('_', '-')}"
    return click.option(*(declarations or (flag, name)), cls=SettingOption, key=key, **chosen)


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
