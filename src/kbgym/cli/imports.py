"""`kbgym import SOURCE`: the sources by name, each in a module of its own that is loaded when it is called."""

from __future__ import annotations

import importlib

import click

# source: the module under kbgym.cli that defines its click command, and the line `kbgym import --help` shows
SOURCES: dict[str, tuple[str, str]] = {
    "paper-universe": ("import_paper", "The universe of the paper, as its authors published it."),
    "phantomwiki": ("import_phantomwiki", "PhantomWiki, by its own generator or from its output folder."),
}


class Sources(click.Group):
    """A group that imports a source's module only when that source is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SOURCES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in SOURCES:
            return None
        module = importlib.import_module(f"kbgym.cli.{SOURCES[name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Sources"):
            formatter.write_dl([(name, line) for name, (_, line) in SOURCES.items()])


@click.group("import", cls=Sources)
def command() -> None:
    """Make a world from somebody else's documents or questions.

    \b
    Example:
      kbgym import paper-universe paper-universe.json --out worlds/paper
    """
