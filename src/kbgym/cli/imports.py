"""The `import` verb: public sets, the paper's universe and PhantomWiki."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from kbgym.cli.common import Printed, size_options, splits_of, verb, with_search, world_values
from kbgym.cli.main import Verbs
from kbgym.cli.settings import options
from kbgym.errors import BadInput
from kbgym.search.base import SearchKind

if TYPE_CHECKING:
    from kbgym.worlds.phantomwiki.build import Shipped
    from kbgym.worlds.splits import Sizes
    from kbgym.worlds.world import World

# source: the module under kbgym.cli that defines its click command, and the line `kbgym import --help` shows
SOURCES: dict[str, tuple[str, str]] = {
    "paper-universe": ("imports:paper_universe", "The universe of the paper, as its authors published it."),
    "phantomwiki": ("imports:phantomwiki", "PhantomWiki, by its own generator or from its output folder."),
    "corpus": (
        "corpus:corpus_command",
        "Your own documents: Markdown, text, HTML, JSONL, CSV; and questions.",
    ),
    "hotpotqa": ("imports:hotpotqa", "HotpotQA, distractor or fullwiki, in its official format."),
    "2wiki": ("imports:twowiki", "2WikiMultihopQA in its official format."),
    "musique": ("imports:musique", "MuSiQue in its official format."),
}


class Sources(Verbs):
    """The sources, loaded as the verbs are."""

    verbs: ClassVar = SOURCES
    sections: ClassVar = {"Sources": " ".join(SOURCES)}


@click.group("import", cls=Sources)
def command() -> None:
    """Make a world from documents or a public question set.

    \b
    Example:
      kbgym import paper-universe paper-universe.json --out worlds/paper
    """


def _command(dataset: str, title: str, example: str) -> click.Command:
    @verb(dataset)
    @click.argument("file", type=click.Path(path_type=Path))
    @click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write the world to.")
    @click.option("--limit", type=click.IntRange(min=1), help="Take this many questions and their paragraphs.")
    @click.option("--seed", default=0, show_default=True, help="Decides which questions, and the splits.")
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
        lines = [
            f"{out}: {len(world.documents):,} documents, {len(world.questions):,} questions ({splits_of(world)}).",
            f"hash {world.hash}",
        ]
        counted = {
            "unanswerable questions left out: in a common store they can be answered": made.unanswerable,
            "supporting facts that name no sentence of their paragraph": made.bad_supports,
            "sentences cut because they were too long": made.long_sentences,
            "pairs of questions in nearly the same words": len(made.questions.duplicates),
        }
        lines += [f"  {count:,} {what}" for what, count in counted.items() if count]
        lines.append("These texts are public: models may know them, so compare with an exam without a store.")
        return result, "\n".join(lines)

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
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write the world to.")
def paper_universe(file: Path, out: Path) -> Printed:
    """Make a world from the universe FILE that the paper's authors published.

    Every gold is checked against the people the documents describe; writes the whole world or nothing.

    \b
    Example:
      kbgym import paper-universe paper-universe.json --out worlds/paper
    """
    from kbgym.worlds.people.paper import read

    world = read(file)
    world.save(out)
    counts = f"{len(world.documents)} documents, {len(world.questions)} questions"
    return world_values(world), f"{out}: {counts} ({splits_of(world)}).\nhash {world.hash}"


@verb("phantomwiki")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write the world to.")
@click.option("--from", "source", type=click.Path(path_type=Path), help="An output folder of pw-generate, to import.")
@click.option("--seed", type=int, help="The generator's seed.  [default: 1]")
@options("trees", "per_type")
@click.option("--disjoint-keys", is_flag=True, help="Draw the splits from the whole pools; no test key is trained on.")
@size_options
def phantomwiki(
    out: Path,
    source: Path | None,
    seed: int | None,
    trees: int | None,
    per_type: int | None,
    disjoint_keys: bool,
    **given: int,
) -> Printed:
    """Make a world of PhantomWiki: its articles' sentences, its questions, whole pools and supports.

    Runs the official generator (phantom-wiki 1.0.3 with SWI-Prolog) at the paper's settings, or imports what it wrote
    with --from. Every shipped question is checked against the answer the articles give. Says which keys the splits
    share; --disjoint-keys avoids it. Writes the whole world or nothing.

    \b
    Examples:
      kbgym import phantomwiki --out worlds/phantomwiki
      kbgym import phantomwiki --from pw-output --disjoint-keys --out worlds/phantomwiki-disjoint
    """
    from kbgym.worlds.phantomwiki import RESERVED, leakage
    from kbgym.worlds.splits import Sizes

    if min(given.values()) < 0:
        raise BadInput("a split cannot have fewer than no questions.")
    if source is not None and (seed, trees, per_type) != (None, None, None):
        raise BadInput("--seed, trees and per_type go with generating; leave them out with --from.")
    wanted = (1 if seed is None else seed, 16 if trees is None else trees, 60 if per_type is None else per_type)
    world, shipped = _phantomwiki(source, wanted, Sizes(**given), disjoint_keys)
    world.save(out)
    shared = leakage(world)
    result = {
        **world_values(world),
        "shipped": shipped,
        "reserved": list(RESERVED),
        "disjoint_keys": disjoint_keys,
        "leakage": {
            name: {"questions": leak.questions, "shared": leak.shared, "share": round(leak.share, 4)}
            for name, leak in shared.items()
        },
    }
    told = ", ".join(f"{leak.shared} of {leak.questions} in {name}" for name, leak in shared.items())
    text = "\n".join(
        [
            f"{out}: {shipped.articles} articles, {shipped.sentences:,} documents; {shipped.questions} shipped "
            f"questions ({shipped.distinct} distinct), all answered alike by our pools.",
            f"{len(world.questions)} questions in the splits ({splits_of(world)}), drawn from "
            f"{'the whole pools' if disjoint_keys else 'the shipped ones'}; {', '.join(RESERVED)} are reserved.",
            f"Left out of every split: tautologies, which ask for the value they name "
            f"({shipped.tautologies} of the shipped questions).",
            f"Questions whose key a training question names too: {told or 'none'}."
            + ("" if disjoint_keys else " Use --disjoint-keys to have none."),
            f"hash {world.hash}",
        ]
    )
    return result, text


def _phantomwiki(source: Path | None, wanted: tuple[int, int, int], sizes: Sizes, apart: bool) -> tuple[World, Shipped]:
    """Read the generator's output folder, or generate one with a seed, so many trees and questions per type."""
    from kbgym.worlds.phantomwiki import build
    from kbgym.worlds.phantomwiki.files import check, generate

    if source is not None:
        return build(source, sizes, apart, 1)
    with tempfile.TemporaryDirectory(prefix="kbgym-phantomwiki-") as scratch:
        generate(Path(scratch), *wanted)
        world, shipped = build(Path(scratch), sizes, apart, wanted[0])
    check(*wanted, (shipped.articles, shipped.sentences, shipped.questions))
    return world, shipped
