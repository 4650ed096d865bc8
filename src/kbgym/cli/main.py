"""The `kbgym` command: verbs loaded on demand, errors reported as one sentence.

Exit codes: 0 success, 1 failure, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from typing import ClassVar

import click
from click.shell_completion import CompletionItem

from kbgym import __version__, plugins
from kbgym.errors import KbgymError
from kbgym.sanitize import safe_text

# verb: the module that defines its click command (`command`, or the name after a colon), and its line of help
VERBS: dict[str, tuple[str, str]] = {
    "init": ("init", "Set up a project: write kbgym.toml and import your documents."),
    "examples": ("examples", "List the examples in this package, or copy one."),
    "demo": ("prove:demo_command", "Generate a world, train a store and report the gain, offline."),
    "prove": ("prove", "Measure whether training helps: exams, training and a verdict; run again to resume."),
    "doctor": ("doctor", "Check the installation, or that an agent can play."),
    "generate": ("generate", "Generate a world of fictional people with questions and exact answers."),
    "import": ("imports", "Import documents or a public question set as a world."),
    "questions": ("questions", "Draft questions over your documents with a model, for your approval."),
    "train": ("train", "Train a store on a world's questions; run again to resume."),
    "exam": ("exam", "Examine a frozen store with an independent reader."),
    "probe": ("exam:probe_command", "Draw the gradient's question groups for a trained run."),
    "baseline": ("baseline", "Build an unsupervised store: flat, pages, graphrag, hipporag, raptor, lightrag, oracle."),
    "experiment": ("experiment", "Run all arms, question groups and seeds; run again to resume."),
    "report": ("report", "Write every table and figure of an experiment or a run."),
    "play": ("play", "Let an agent connected over MCP train a store or take an exam."),
    "store": ("store", "Inspect, copy, verify and restore a store and its history."),
    "audit": ("audit", "Report coverage, index quality, damage and next steps of a store."),
    "view": ("view", "Browse runs, experiments and stores on a local page."),
    "serve": ("serve", "Serve a store to agents over MCP or HTTP, and keep it learning."),
    "connect": ("connect", "Add a store to an agent's configuration: Claude Code, Codex, Zed and others."),
    "learn": ("learn", "Learn from traffic, list the agenda, or work it off."),
    "watch": ("corpus:watch_command", "Keep a store in step with the files it was made from."),
    "submit": ("export:submit", "Pack an exam for others to check, or verify such a file."),
    "export": ("export", "Export transcripts for fine-tuning, or a benchmark as a data set."),
}

ENVIRONMENT = """\b
Exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted.
Environment:
  KBGYM_MODEL        a folder with the embedding model's files
  KBGYM_CACHE        vectors and models that are kept  [~/.cache/kbgym]
  KBGYM_CONFIG       which agents of which folders you trust  [~/.config/kbgym]
  OPENAI_API_KEY, ANTHROPIC_API_KEY, KBGYM_LOCAL_API_KEY, KBGYM_TOKEN
"""

# The sections of `kbgym --help`.
SECTIONS = {
    "Start": "examples init prove demo doctor",
    "Worlds": "generate import questions",
    "Training and measurement": "train exam probe baseline experiment report play",
    "Stores": "store audit view",
    "Serving": "serve connect learn watch",
    "Sharing": "submit export",
}


class Verbs(click.Group):
    """A group that imports a verb's module only when that verb is called, so that `--help` is fast."""

    verbs: ClassVar = VERBS
    sections: ClassVar = SECTIONS

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.verbs:
            if self.verbs is VERBS and plugins.has("kbgym.commands", name):
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
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), self.verbs[name][1]) for name in names.split()])


@click.group(cls=Verbs, epilog=ENVIRONMENT, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def app() -> None:
    """Train a knowledge base the way one trains a model.

    A store of one-sentence documents and links is the parameters; supervised questions are the data; a frozen exam is
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
        click.echo(f"kbgym: {_sentence(error)}", err=True)
        sys.exit(error.exit_code)
    except RecursionError:  # a value that could be parsed may still be nested too deeply to be written
        click.echo("kbgym: something in these files is nested too deeply.", err=True)
        sys.exit(1)
    sys.exit(0)


def _sentence(error: KbgymError) -> str:
    """Return an error as one line; a long one is shortened in the middle."""
    text = safe_text(str(error))
    return text if len(text) <= 1_000 else f"{text[:600]} ... {text[-300:]}"
