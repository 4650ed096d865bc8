"""`kbgym import hotpotqa|2wiki|musique|paper-universe`: public question sets and the paper's universe as worlds."""

from __future__ import annotations

from pathlib import Path

import click

from kbgym.cli.common import Printed, splits_of, verb, with_search, world_values
from kbgym.search.base import SEARCHES, SearchKind


def _command(dataset: str, title: str, example: str) -> click.Command:
    @verb(dataset)
    @click.argument("file", type=click.Path(path_type=Path))
    @click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write the world to.")
    @click.option("--limit", type=click.IntRange(min=1), help="Take this many questions and their paragraphs.")
    @click.option("--seed", default=0, show_default=True, help="Decides which questions, and the splits.")
    @click.option("--search", type=click.Choice(SEARCHES), help="What the world is searched by.  [default: hybrid]")
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
