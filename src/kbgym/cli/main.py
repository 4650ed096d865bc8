"""The `kbgym` command: the verbs by name, each loaded when it is called, and errors as one sentence.

Exit codes: 0 done, 1 the thing asked failed, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import importlib
import io
import os
import sys

import click
from click.shell_completion import CompletionItem

from kbgym import __version__, plugins
from kbgym.errors import KbgymError
from kbgym.sanitize import safe_text

# verb: the module that defines its click command (`command`, or what is named behind a colon), and its line of help
VERBS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "The whole story, offline: generate, train, examine, and what it gained."),
    "generate": ("generate", "Make a world of fictional people, with questions and exact golds."),
    "export-benchmark": ("export_benchmark", "Worlds of a named benchmark as a data set with a card, golds apart."),
    "import": ("imports", "Make a world from somebody else's documents or questions."),
    "questions": ("questions", "Draft questions over your documents with a model, for you to approve."),
    "prove": ("prove", "Does a trained store help? Exams, training and a verdict in plain words; run again to resume."),
    "train": ("train", "Train a store on a world's questions; run again to resume."),
    "exam": ("exam", "Examine a frozen store with an independent reader."),
    "probe": ("exam:probe_command", "Draw the gradient's question groups for a trained run."),
    "audit": ("audit", "The health of a store: coverage, index quality, what is broken, what to do next."),
    "baseline": ("baseline", "An unsupervised arm's store: flat, pages, graphrag, hipporag, raptor, lightrag, oracle."),
    "experiment": ("experiment", "All arms, all question groups, several seeds; run again to resume."),
    "report": ("report", "Every table and figure of an experiment or a run, in one file."),
    "play": ("play", "An agent that is connected over MCP plays: trains a store, or is examined on one."),
    "submit": ("submit", "Pack an exam and its store's history into one file that others can check."),
    "verify-submission": ("submit:verify_command", "Do a submitted exam again, action by action, and grade it again."),
    "doctor": ("doctor", "Can this agent play, how fast, and at what price?"),
    "transcripts": ("transcripts", "What was played as chats, preferences or ATIF trajectories, to learn from."),
    "replay": ("replay", "Rebuild a store from its trace and verify every recorded result."),
    "log": ("history:log_command", "What happened to a store, an iteration a line."),
    "diff": ("history:diff_command", "What differs between two stores, or two iterations of one."),
    "blame": ("history:blame_command", "Which question and step wrote a document and each of its links."),
    "explain": (
        "explain",
        "How a question of a run's exams went on each store, and which indexes it opened.",
    ),
    "prune": ("prune", "Take out indexes that a run's exams never opened or that did harm; can be rolled back."),
    "rollback": ("history:rollback_command", "Return a store to an earlier iteration, keeping the history."),
    "watch": ("watch", "Keep a store in step with the files it was made from."),
    "store": ("store", "Search, read, count or export a store."),
    "view": ("view", "Look at runs, experiments and stores on a page of this machine."),
    "serve": ("serve", "Serve a store to agents over MCP or HTTP, and keep it learning."),
    "connect": ("connect", "Put a store into an agent's own configuration: Claude Code, Codex, Zed and others."),
    "mcp-bridge": ("mcp_bridge", "Standard streams for agents whose MCP server must be a program."),
    "learn": ("learn", "Learn from a file of traffic: answer each question first, then see its gold."),
    "agenda": ("agenda", "What is worth indexing next, worked out from the trace."),
    "curate": ("curate", "Work the agenda off between questions."),
    "completion": ("completion", "Completion of verbs and options for bash, zsh or fish."),
}


ENVIRONMENT = """\b
Exit codes: 0 done, 1 what was asked failed, 2 bad input, 130 interrupted.
Environment:
  KBGYM_MODEL        a folder with the embedding model's files
  KBGYM_CACHE        vectors and models that are kept  [~/.cache/kbgym]
  KBGYM_CONFIG       which agents of which folders you trust  [~/.config/kbgym]
  OPENAI_API_KEY, ANTHROPIC_API_KEY, KBGYM_LOCAL_API_KEY, KBGYM_TOKEN
"""

# How `kbgym --help` lists them.
SECTIONS = {
    "Start": "demo prove",
    "Make a world": "generate import questions export-benchmark",
    "Train and measure": "train exam probe baseline experiment report doctor play",
    "Look into a store and its history": "store view audit explain log diff blame agenda",
    "Change or restore a store": "curate learn watch prune rollback replay",
    "Give it to agents": "serve connect mcp-bridge",
    "Pass it on": "submit verify-submission transcripts completion",
}


class Verbs(click.Group):
    """A group that imports a verb's module only when that verb is called, so that `--help` is instant."""

    verbs, sections = VERBS, SECTIONS

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.verbs, *(plugins.names("kbgym.commands") if self.verbs is VERBS else ())]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.verbs:
            found = self.verbs is VERBS and plugins.has("kbgym.commands", name)
            added: click.Command | None = plugins.load("kbgym.commands", name) if found else None
            return added
        module, _, attribute = self.verbs[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"kbgym.cli.{module}"), attribute or "command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Without loading a verb, since somebody waits with a finger on a key."""
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
    # A second thread for products of a matrix and a vector waits for memory like the first, and keeps a processor busy.
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
    except RecursionError:  # a value that could just be read may still be nested too deeply to be written
        click.echo("kbgym: something in these files is nested too deeply.", err=True)
        sys.exit(1)
    sys.exit(0)


def _sentence(error: KbgymError) -> str:
    """What went wrong as one line of a bearable length: how it begins, and how it ends, which is what to do."""
    text = safe_text(str(error))
    return text if len(text) <= 1_000 else f"{text[:600]} ... {text[-300:]}"
