"""`kbgym import SOURCE`: the sources by name, each in a module of its own that is loaded when it is called."""

from __future__ import annotations

import importlib

import click

# source: the module under kbgym.cli that defines its click command, and the line `kbgym import --help` shows
SOURCES: dict[str, tuple[str, str]] = {
    "paper-universe": ("import_paper", "The universe of the paper, as its authors published it."),
    "phantomwiki": ("import_phantomwiki", "PhantomWiki, by its own generator or from its output folder."),
    "corpus": ("import_corpus", "Your own documents: Markdown, text, HTML, JSONL, CSV, and a file of questions."),
    "hotpotqa": ("import_public:hotpotqa", "HotpotQA, distractor or fullwiki, in its official format."),
    "2wiki": ("import_public:twowiki", "2WikiMultihopQA in its official format."),
    "musique": ("import_public:musique", "MuSiQue in its official format."),
}


class Sources(click.Group):
    """A group that imports a source's module only when that source is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SOURCES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in SOURCES:
            return None
        module, _, attribute = SOURCES[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"kbgym.cli.{module}"), attribute or "command")
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
