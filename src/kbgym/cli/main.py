"""The `kbgym` command: verbs loaded on demand, errors reported as one sentence.

Exit codes: 0 success, 1 failure, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from typing import Any

import click
from click.shell_completion import CompletionItem

from kbgym import __version__, plugins
from kbgym.cli import read_table
from kbgym.errors import KbgymError
from kbgym.sanitize import safe_text

# group: section of its help: verb: where its click command is defined, and its line of help
TABLE: dict[str, dict[str, dict[str, list[str]]]] = read_table("verbs.toml")
SECTIONS = TABLE["kbgym"]
VERBS = [name for section in SECTIONS.values() for name in section]


class Verbs(click.Group):
    """A group that imports a verb's module only when that verb is called, so that `--help` is fast."""

    def __init__(self, *names: Any, table: str, **more: Any) -> None:
        super().__init__(*names, **more)
        self.sections = TABLE[table]
        self.verbs = {name: verb for section in self.sections.values() for name, verb in section.items()}
        self.has_plugins = table == "kbgym"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.verbs:
            if self.has_plugins and plugins.has("kbgym.commands", name):
                added: click.Command = plugins.load("kbgym.commands", name)
                return added
            near = difflib.get_close_matches(name, self.verbs, 1)
            if near and not ctx.resilient_parsing:
                ctx.fail(f"No such command {name!r}. Did you mean {near[0]!r}?")
            return None
        module, _, attribute = self.verbs[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"kbgym.cli.{module}"), attribute or "command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs without loading their modules."""
        begun = [name for name in self.verbs if name.startswith(incomplete)]
        verbs = [CompletionItem(name, help=self.verbs[name][1]) for name in begun]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self.verbs))
        for title, verbs in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), line) for name, (_, line) in verbs.items()])


@click.group(
    cls=Verbs,
    table="kbgym",
    epilog=read_table("texts.toml")["environment"],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__)
def app() -> None:
    """Train a knowledge base the way one trains a model.

    A store of documents and links is the parameters; supervised questions are the data; a frozen exam is
    the loss. Start with `kbgym demo`.
    """


def run(arguments: list[str] | None = None) -> None:
    """Run the command line; never returns."""
    # A second BLAS thread for matrix-vector products is limited by memory bandwidth and only occupies a core.
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app.main(args=arguments, prog_name="kbgym", standalone_mode=False)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo("\n".join(map(safe_text, shown.getvalue().splitlines())), err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted; what was finished is kept, run the same command again to go on.", err=True)
        sys.exit(130)
    except KbgymError as error:
        text = safe_text(str(error))
        click.echo(f"kbgym: {text if len(text) <= 1_000 else f'{text[:600]} ... {text[-300:]}'}", err=True)
        sys.exit(error.exit_code)
    except RecursionError:  # a value that could be parsed may still be nested too deeply to be written
        click.echo("kbgym: something in these files is nested too deeply.", err=True)
        sys.exit(1)
    sys.exit(0)
