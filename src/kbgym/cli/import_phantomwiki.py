"""`kbgym import phantomwiki`: a world by PhantomWiki's own generator, freshly generated or from its output folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from kbgym.cli.common import Printed, size_options, splits_of, verb, world_values
from kbgym.errors import BadInput


@verb("phantomwiki")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write the world to.")
@click.option("--from", "source", type=click.Path(path_type=Path), help="An output folder of pw-generate, to import.")
@click.option("--seed", type=int, help="The generator's seed.  [default: 1]")
@click.option("--trees", type=int, help="How many family trees.  [default: 16]")
@click.option("--per-type", type=int, help="Questions of each of the 8 types.  [default: 60]")
@click.option("--disjoint-keys", is_flag=True, help="Draw the splits from the whole pools; no test key is trained on.")
@click.option("--version", type=click.IntRange(1, 2), default=2, help="1 has ids that tell the order.  [default: 2]")
@size_options
def command(
    out: Path,
    source: Path | None,
    seed: int | None,
    trees: int | None,
    per_type: int | None,
    disjoint_keys: bool,
    version: int,
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
    from kbgym.worlds.phantomwiki import RESERVED, build, leakage
    from kbgym.worlds.phantomwiki.files import check, generate
    from kbgym.worlds.splits import Sizes

    sizes, numbered = Sizes(**given), version == 1
    if min(given.values()) < 0:
        raise BadInput("a split cannot have fewer than no questions.")
    if source is not None:
        if (seed, trees, per_type) != (None, None, None):
            raise BadInput("--seed, --trees and --per-type go with generating; leave them out with --from.")
        world, shipped = build(source, sizes, disjoint_keys, None if numbered else 1)
    else:
        wanted = (1 if seed is None else seed, 16 if trees is None else trees, 60 if per_type is None else per_type)
        with tempfile.TemporaryDirectory(prefix="kbgym-phantomwiki-") as scratch:
            generate(Path(scratch), *wanted)
            world, shipped = build(Path(scratch), sizes, disjoint_keys, None if numbered else wanted[0])
        check(*wanted, (shipped.articles, shipped.sentences, shipped.questions))
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
