"""The `import` verb: public sets, the paper's universe and PhantomWiki."""

from __future__ import annotations

from pathlib import Path

import click

from kbgym.cli.common import Printed, size_options, splits_of, verb, with_search, world_values
from kbgym.cli.main import Verbs
from kbgym.cli.settings import options
from kbgym.search.base import SearchKind


@click.group("import", cls=Verbs, table="import")
def command() -> None:
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
    counts = f"{len(world.documents)} documents, {len(world.questions)} questions"
    return world_values(world), f"{out}: {counts} ({splits_of(world)}).\nhash {world.hash}"


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
    result = {
        **world_values(world),
        "shipped": shipped,
        "reserved": list(RESERVED),
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
            f"{len(world.questions)} questions in the splits ({splits_of(world)}); {', '.join(RESERVED)} are reserved.",
            f"Left out of every split: tautologies, which ask for the value they name "
            f"({shipped.tautologies} of the shipped questions).",
            f"Questions whose key a training question names too: {told or 'none'}.",
            f"hash {world.hash}",
        ]
    )
    return result, text
