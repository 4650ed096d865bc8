"""`kbgym import SOURCE`: the sources by name, each in a module of its own that is loaded when it is called."""

from __future__ import annotations

import click

from kbgym.cli.main import Verbs

# source: the module under kbgym.cli that defines its click command, and the line `kbgym import --help` shows
SOURCES: dict[str, tuple[str, str]] = {
    "paper-universe": ("import_public:paper_universe", "The universe of the paper, as its authors published it."),
    "phantomwiki": ("import_phantomwiki", "PhantomWiki, by its own generator or from its output folder."),
    "corpus": ("import_corpus", "Your own documents: Markdown, text, HTML, JSONL, CSV, and a file of questions."),
    "hotpotqa": ("import_public:hotpotqa", "HotpotQA, distractor or fullwiki, in its official format."),
    "2wiki": ("import_public:twowiki", "2WikiMultihopQA in its official format."),
    "musique": ("import_public:musique", "MuSiQue in its official format."),
}


class Sources(Verbs):
    """The sources, loaded as the verbs are."""

    verbs, sections = SOURCES, {"Sources": " ".join(SOURCES)}


@click.group("import", cls=Sources)
def command() -> None:
    """Make a world from somebody else's documents or questions.

    \b
    Example:
      kbgym import paper-universe paper-universe.json --out worlds/paper
    """
