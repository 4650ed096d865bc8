"""`kbgym import corpus`: your own files as a world, and later as the same world brought up to date."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from kbgym.agents.llm.connect import is_model
from kbgym.baselines.pages import with_page_links
from kbgym.cli.common import emit, output_options, progress, with_search
from kbgym.cli.import_report import result_of, text_of
from kbgym.cli.spending import Spending, spending_options, with_spend
from kbgym.corpus.build import ReadingOptions
from kbgym.corpus.landing import reimport
from kbgym.corpus.make import Made, load_old, make, replace_world
from kbgym.corpus.rewrite import COMPLETION, Rewriter
from kbgym.errors import BadInput
from kbgym.search.base import SEARCHES, SearchKind


@click.command("corpus")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--questions", type=click.Path(path_type=Path), help="Questions and answers: CSV, JSON or JSONL.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write the world to.")
@click.option(
    "--on-error",
    type=click.Choice(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="What to do when a file cannot be read: import nothing, or leave it out and name it.",
)
@click.option("--links", is_flag=True, help="Wiki links and links between the files become links of the store.")
@click.option(
    "--site", default="", metavar="URL", help="As --links; links to this address are links between the files."
)
@click.option("--structure", is_flag=True, help="As --links; pages link to their sentences and to pages they name.")
@click.option("--follow", is_flag=True, help="Also read what symbolic links out of the folder lead to.")
@click.option(
    "--code", type=click.Choice(["skip", "keep"]), default="keep", show_default=True, help="Code blocks, one each."
)
@click.option("--language", default="en", show_default=True, help="What the texts are written in, for splitting.")
@click.option("--about", default="", help="What the documents are, in a sentence or two, for a model's prompt.")
@click.option("--seed", default=0, show_default=True, help="Decides the splits where the questions give none.")
@click.option("--update", is_flag=True, help="Bring the world at --out up to date; unchanged sentences keep their ids.")
@click.option("--store", type=click.Path(path_type=Path), help="With --update: a run or store that follows as well.")
@click.option("--rewrite", help="A model that makes every sentence stand alone: llm:PROVIDER/MODEL or cassette:FILE.")
@click.option("--search", type=click.Choice(SEARCHES), help="What the world is searched by.  [default: hybrid]")
@spending_options
@output_options
def command(
    paths: tuple[Path, ...],
    questions: Path | None,
    out: Path,
    on_error: Literal["refuse", "skip"],
    links: bool,
    site: str,
    structure: bool,
    follow: bool,
    code: Literal["skip", "keep"],
    language: str,
    about: str,
    seed: int,
    update: bool,
    store: Path | None,
    rewrite: str | None,
    search: SearchKind | None,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Make a world from your own documents: PATHS are files, or folders of them.

    Markdown, reStructuredText, HTML, text, YAML, TOML, JSON, JSONL and CSV are read; with kbgym[formats] also PDF,
    DOCX, PPTX, XLSX, EPUB and notebooks. Every document is one sentence with the title and section it stands under,
    one row of a table, one field or one block of code; file and place are kept as its source. What is not read, or
    read and left out, is named. Writes the whole world or nothing.

    With --rewrite a model says every sentence so that it stands alone ("She was built in 1994." names the boat). Its
    replies are kept beside the world, so that an interrupted import goes on where it was and unchanged files cost
    nothing again; what fails the checks stays as it was.

    \b
    Example:
      kbgym import corpus examples/skarn/pages --questions examples/skarn/questions.jsonl --links --out worlds/skarn
      kbgym import corpus examples/skarn/pages --links --out worlds/skarn --update --store runs/skarn
      kbgym import corpus examples/harbour/notes --out worlds/alone --rewrite llm:openai/gpt-5-mini --max-cost 1
    """
    spending = Spending(flags)
    if store is not None and not update:
        raise BadInput("--store needs --update: a new world has no store yet.")
    old = load_old(out) if update else None
    structure = structure or (old is not None and bool(old.facts.get("structure")))
    links, relink = links or structure, with_page_links if structure else None
    options = ReadingOptions(language, links, code, on_error, follow=follow, site=site, about=about.strip())

    def written(made: Made) -> Made:
        world = with_search(made.world, search or (old.facts.get("search") if old else None))
        if old is None:
            world.save(out)
        else:
            replace_world(old, world, out)
        return msgspec.structs.replace(made, world=world)

    if rewrite is None:
        with progress("reading", quiet or as_json) as tick:
            made = make(paths, questions, options, seed, old, tick, structure=relink)
            tick(1, 1, f"writing {len(made.world.documents):,} documents")
            made = written(made)
    else:
        if not is_model(rewrite):
            raise BadInput(f"--rewrite takes a model, llm:PROVIDER/MODEL or cassette:FILE, not {rewrite!r}.")
        # The cassette lies beside the world: a world holds three files and no other.
        cassette = out.with_name(f"{out.name}.rewrite.cassette.jsonl") if rewrite.startswith("llm:") else None
        confirm = partial(spending.confirm_requests, rewrite, completion=COMPLETION)
        with spending.models([rewrite], cassette) as models, progress("rewriting", quiet or as_json) as tick:
            assert models is not None
            rewriter = Rewriter(models, rewrite, spending.concurrency, confirm, with_spend(tick, models))
            options = msgspec.structs.replace(options, rewriter=rewriter.name)
            made = make(paths, questions, options, seed, old, rewrite=rewriter, structure=relink)
        made = written(made)
    followed = reimport(store, made.world) if store else None
    emit(result_of(made, followed), as_json, quiet, "\n".join(text_of(out, made, store, followed)))
