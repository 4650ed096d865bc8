"""`kbgym generate`, `kbgym import` and `kbgym examples`: worlds, and documents to try kbgym on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

import kbgym
from kbgym.canonical import encode
from kbgym.cli.common import Printed, size_options, verb, with_search, world_text, world_values
from kbgym.cli.main import Verbs
from kbgym.cli.settings import options
from kbgym.errors import BadInput
from kbgym.search.base import SearchKind

_DIALS = ("depth", "breadth", "passage", "time", "sources", "rounds", "wordings")


@verb("generate")
@size_options
@options(*_DIALS, "round", "hard")
def generate_command(
    people: int,
    seed: int,
    out: Path | None,
    template: str | None,
    hard: bool | None,
    benchmark: str,
    round: int | None,
    **given: Any,
) -> Printed | None:
    """Make a world of fictional people, with questions and exact expected answers.

    Writes documents.jsonl, questions.jsonl and world.json, or nothing at all.

    \b
    Examples:
      kbgym generate --people 500 --seed 0 --out worlds-out/w0
      kbgym generate --pool job-and-city > pool.jsonl
      kbgym generate --benchmark 3 --set passage=8 --out worlds-out/v3
    """
    from kbgym.worlds import people3
    from kbgym.worlds.kinds import kind_of
    from kbgym.worlds.people import generate as people_world
    from kbgym.worlds.splits import Sizes
    from kbgym.worlds.updates import updated

    dials = {name: value for name in _DIALS if (value := given.pop(name)) is not None}
    asked = Sizes(**given) if template is None else Sizes(0, 0, 0, 0, 0)
    if (template is None) == (out is None):
        raise BadInput("say where to write the world with --out DIR, or what to print with --pool; not both.")
    if benchmark == "2":
        if dials:
            raise BadInput(f"{', '.join(dials)}: only --benchmark 3 has dials.")
        world = people_world(people, seed, asked, hard=bool(hard))
    else:
        if hard:
            raise BadInput("hard worlds are of benchmark 2; benchmark 3 has dials.")
        asked = people3.DEFAULT_SIZES if asked == Sizes() else asked
        world = people3.generate(people, seed, asked, people3.Dials(**dials))
        world = updated(world, round) if round else world
    if out is None:
        _print_lines(kind_of(world).pool(world, template or ""))
        return None
    world.save(out)
    return world_values(world), world_text(out, world)


def _print_lines(values: Iterable[object]) -> None:
    """Print JSON lines to stdout; a reader that stops early (`| head`) is not an error."""
    try:
        for value in values:
            sys.stdout.buffer.write(encode(value) + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# -- import ----------------------------------------------------------------------------------------------------------


@click.group("import", cls=Verbs, table="import")
def import_command() -> None:
    """Make a world from documents or a public question set.

    \b
    Example:
      kbgym import paper-universe paper-universe.json --out worlds/paper
    """


def _command(dataset: str, title: str, example: str) -> click.Command:
    @verb(dataset, declared="public set")
    @click.argument("file", type=click.Path(path_type=Path))
    @options("search")
    def command(file: Path, out: Path, limit: int | None, seed: int, search: SearchKind | None) -> Printed:
        from kbgym.corpus.public import read_public

        made = read_public(dataset, file, limit, seed)
        world = with_search(made.world, search)
        world.save(out)
        result = {
            **world_values(world),
            **{name: getattr(made, name) for name in ("unanswerable", "bad_supports", "long_sentences")},
            **{name: getattr(made.questions, name) for name in ("duplicates", "leaks")},
        }
        counted = {
            "unanswerable questions left out: in a common store they can be answered": made.unanswerable,
            "supporting facts that name no sentence of their paragraph": made.bad_supports,
            "sentences cut because they were too long": made.long_sentences,
            "pairs of questions in nearly the same words": len(made.questions.duplicates),
        }
        lines = [f"  {count:,} {what}" for what, count in counted.items() if count]
        public = "These texts are public: models may know them, so compare with an exam without a store."
        return result, [*world_text(out, world).splitlines(), *lines, public]

    command.help = f"""Make a world from {title} in its official format, distractor paragraphs included.

    \b
    Example:
      kbgym import {dataset} {example} --limit 500 --out worlds/{dataset}
    """
    return command


hotpotqa = _command("hotpotqa", "a HotpotQA file (distractor or fullwiki)", "hotpot_dev_distractor_v1.json")
twowiki = _command("2wiki", "a 2WikiMultihopQA file", "dev.json")
musique = _command("musique", "a MuSiQue file", "musique_ans_v1.0_dev.jsonl")


@verb("paper-universe")
@click.argument("file", type=click.Path(path_type=Path))
def paper_universe(file: Path, out: Path) -> Printed:
    """Make a world from the universe FILE that the paper's authors published.

    Every gold is checked against the people in the documents. The world is written atomically.

    \b
    Example:
      kbgym import paper-universe paper-universe.json --out worlds/paper
    """
    from kbgym.worlds.people.paper import read

    world = read(file)
    world.save(out)
    return world_values(world), world_text(out, world)


@verb("phantomwiki")
@size_options
def phantomwiki(out: Path, source: Path, **given: int) -> Printed:
    """Make a world of PhantomWiki: its articles' sentences, its questions, whole pools and supports.

    Reads the output of the official generator (phantom-wiki 1.0.3; scripts/install_phantomwiki.sh installs it). At the
    paper's settings: pw-generate -od pw-output --seed 1 --num-family-trees 16 --num-questions-per-type 60
    --article-format json --question-format json. Every shipped question is checked against the answer that the
    articles give. Reports which keys the splits share.

    \b
    Example:
      kbgym import phantomwiki --from pw-output --out worlds/phantomwiki
    """
    from kbgym.worlds.phantomwiki import RESERVED, build, leakage
    from kbgym.worlds.splits import Sizes

    world, shipped = build(source, Sizes(**given))
    world.save(out)
    shared = leakage(world)
    leaked = {
        name: {"questions": leak.questions, "shared": leak.shared, "share": round(leak.share, 4)}
        for name, leak in shared.items()
    }
    result = {**world_values(world), "shipped": shipped, "reserved": list(RESERVED), "leakage": leaked}
    told = ", ".join(f"{leak.shared} of {leak.questions} in {name}" for name, leak in shared.items())
    lines = [
        f"{shipped.articles} articles; {shipped.questions} shipped questions ({shipped.distinct} distinct), all "
        f"answered alike by our pools; {', '.join(RESERVED)} are reserved.",
        f"Left out: {shipped.tautologies} shipped questions that ask for the value they name.",
        f"Questions whose key a training question names too: {told or 'none'}.",
    ]
    return result, [*world_text(out, world).splitlines(), *lines]


# -- examples ---------------------------------------------------------------------------------------------------------

EXAMPLES = {
    "harbour": "Notes of a harbour office in Markdown, text and CSV: 7 files and 20 questions.",
    "skarn": "The handbook of an observatory in linked Markdown pages: 61 files and 88 questions.",
}


@verb("examples")
@click.argument("action", type=click.Choice(["copy"]), required=False)
@click.argument("name", type=click.Choice(list(EXAMPLES)), required=False)
def examples_command(action: str | None, name: str | None, out: Path | None) -> Printed:
    """List the examples, or copy one into a new folder.

    \b
    Example:
      kbgym examples copy harbour
      cd harbour
      kbgym init notes --questions questions.csv
    """
    if action is None:
        return {"examples": list(EXAMPLES)}, [f"{one:9} {text}" for one, text in EXAMPLES.items()]
    if name is None:
        raise BadInput(f"name the example to copy: {', '.join(EXAMPLES)}.")
    target = out or Path(name)
    if target.exists():
        raise BadInput(f"{target} exists already; name another folder with --out.")
    package = Path(kbgym.__file__).parent
    installed = package / "examples"  # else in the source tree
    shutil.copytree((installed if installed.is_dir() else package.parents[1] / "examples") / name, target)
    (documents,) = (path for path in target.iterdir() if path.is_dir())
    (questions,) = target.glob("questions.*")
    step = f"  cd {target}\n  kbgym init {documents.name} --questions {questions.name}"
    result = {"out": str(target), "documents": str(documents), "questions": str(questions)}
    return result, f"Copied to {target}. Next:\n{step}"
