"""The report: every table and figure of the paper's evaluation, ours beside the paper's, from an experiment or a run.

What an experiment does not have (no snapshots, no truth, no second arm, no matplotlib) is left out or named with its
reason; nothing is run here but replays.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kbgym.analysis import figures, network
from kbgym.analysis import published as paper
from kbgym.analysis.cells import Cell, CellSource, Line, Table, number, published, shown
from kbgym.analysis.curves import curve, examined, learning
from kbgym.analysis.no_store import no_store_note
from kbgym.analysis.page import Figure, Report, Section, sections, write
from kbgym.analysis.results import LABELS, POOLED, Results, open_results
from kbgym.analysis.retention import retention
from kbgym.analysis.tables import arms, groups, stores, training, usage
from kbgym.errors import Missing
from kbgym.search.embed import Embedder

Embedders = Callable[[str], Embedder]


def make_report(place: Path, embedder: Embedders | None = None, beside: Path | None = None) -> Report:
    """`embedder` makes the network map possible; `beside` is an experiment on the other benchmark to stand next to."""
    results = open_results(place)
    if results.plan is not None and results.plan.kind == "ablation":
        return _report(results, _ablation(results))
    other = open_results(beside) if beside else None
    if other is not None:
        other.base = results.root
    snapshots = [arm for arm in results.trainings if examined(results.seeds[0], arm, results.groups)]
    found = sections(
        ("The experiment", [worlds(results), stores.arms(results)]),
        (
            "E1: training dynamics",
            [
                *(training.edits(results, arm) for arm in results.trainings),
                *(part for arm in snapshots for part in (_learning(results, arm), learning(results, arm))),
            ],
        ),
        (
            "E2: the key-coverage gradient",
            [
                arms.gradient(results),
                _figure(
                    "gradient-dots",
                    "The gradient with its intervals",
                    results.caption(),
                    arms.below_one(results),
                    lambda: figures.gradient_dots(results),
                ),
                arms.by_seed(results),
                groups.non_inferiority(results),
                groups.budget_split(results),
                benchmarks(results, other) if results.kind in (paper.KIND, paper.OTHER) else None,
            ],
        ),
        (
            "Coverage is the currency",
            [groups.per_point(results), stores.readings(results), groups.against_b3(results)],
        ),
        ("E3: retention by class", [retention(results, arm) for arm in results.trainings]),
        (
            "E4: what was built",
            [
                *(_growth(results, arm) for arm in results.trainings),
                *(_network(results, arm, embedder) for arm in results.trainings[:1]),
                stores.store_audit(results),
                *(stores.index_quality(results, arm) for arm in results.trainings),
                training.breaking_even(results),
                usage.model_usage(results),
                training.timing(results),
            ],
        ),
    )
    return _report(results, found)


def write_report(
    place: Path, out: Path | None = None, embedder: Embedders | None = None, beside: Path | None = None
) -> Path:
    """Make a report and write it, into the folder itself unless told otherwise; the path of the page."""
    return write(make_report(place, embedder, beside), out or place / "report")


def _report(results: Results, found: tuple[Section, ...]) -> Report:
    settings = results.settings
    statement = (
        f"Every number of ours here was produced by {results.agent}. "
        + ("None of them is a language model's. " if results.reference else "")
        + "The paper's figures, where they stand beside ours, are gpt-5-mini's, one seed: compare shapes, not levels."
    )
    notes = [
        f"{len(results.seeds)} seed{'s' if len(results.seeds) > 1 else ''}, {settings.questions} training questions, "
        f"{settings.epochs} epochs, budgets {settings.forward_budget} and {settings.backward_budget}, embedding "
        f"{settings.embedder}. Intervals are 95%.",
        "Every number has an id (hover over it): `kbgym report FOLDER --explain ID` prints its formula and its rows.",
    ]
    notes += no_store_note(results)
    if results.missing:
        notes.append(f"Not here: {'; '.join(f'{arm} ({_why(results, arm)})' for arm in results.missing)}.")
    return Report("kbgym: report of an experiment", statement, tuple(notes), found)


def _why(results: Results, arm: str) -> str:
    return str(results.seeds[0].arms.get(arm, {}).get("skipped", "not examined on every group and seed")).rstrip(".")


def _ablation(results: Results) -> tuple[Section, ...]:
    parts: list[Table | Figure | None] = [
        _figure(
            "ablation",
            "What training buys for the actions it spends",
            f"{results.caption()} {_drawn(results)}",
            _ablation_sentence(results),
            lambda: figures.ablation_curves(results),
        ),
        stores.arms(results),
        arms.gradient(results),
        *(learning(results, arm) for arm in results.trainings),
    ]
    return sections((f"Ablation: {results.plan.vary if results.plan else ''}", parts))


def _drawn(results: Results) -> str:
    by = results.plan.touched if results.plan else 0
    which = f"the keys of {by} training questions decide the groups" if by else "drawn for the largest training set"
    return f"The same questions for all: {which}, and no training saw one of the unseen."


def _ablation_sentence(results: Results) -> str:
    parts = []
    for arm in results.trainings:
        last = curve(results, arm)[-1]
        parts.append(
            f"{results.label(arm)}: {last.spent:,.0f} actions buy {last.coverage:.1%} coverage, "
            f"F1 {last.f1[POOLED]:.3f} at {last.actions[POOLED]:.2f} actions and {last.characters[POOLED]:,.0f} "
            "characters a question."
        )
    return " ".join(parts)


def _figure(name: str, title: str, caption: str, sentence: str, draw: Callable[[], str | bytes]) -> Figure:
    try:
        picture = draw()
    except Missing as reason:
        return Figure(name, title, caption, sentence, missing=f"Left out: {reason}")
    if isinstance(picture, str):
        return Figure(name, title, caption, sentence, svg=picture)
    return Figure(name, title, caption, sentence, png=picture)


def _learning(results: Results, arm: str) -> Figure:
    points = curve(results, arm)
    gains = {g: points[0].actions[g] - points[-1].actions[g] for g in results.groups}
    most, least = max(gains, key=lambda g: gains[g]), min(gains, key=lambda g: gains[g])
    sentence = (
        f"Cost falls most in the {LABELS[most]} group (by {shown(gains[most], 1)} actions) and least in the "
        f"{LABELS[least]} group (by {shown(gains[least], 1)}); over all groups F1 ends at "
        f"{points[-1].f1[POOLED]:.3f} with {points[-1].coverage:.1%} covered."
    )
    many = " Bands and bars: one standard deviation over seeds." if len(results.seeds) > 1 else ""
    caption = f"{results.caption()} Frozen stores from along the training, same questions.{many}"
    return _figure(
        f"learning-figure-{arm}",
        f"Learning: {results.label(arm)}",
        caption,
        sentence,
        lambda: figures.learning_panels(results, arm),
    )


def _growth(results: Results, arm: str) -> Figure:
    found = [seed.trained[arm].trajectory for seed in results.seeds]
    added = sum(one.points[-1].documents - one.points[0].documents for one in found) / len(found)
    authored = sum(one.points[-1].authored for one in found) / len(found)
    links = sum(one.points[-1].links for one in found) / len(found)
    empty = sum(one.degrees.empty for one in found) / len(found)
    sentence = (
        f"The store gains {added:,.0f} documents and {links:,.0f} links a seed; {authored:,.0f} are indexes, "
        f"{empty:.1f} of them empty (the paper: 287 documents, 1,913 links, 43 empty)."
    )
    caption = (
        f"{results.caption(n=False)} By replay of the trace; a line a seed in (a) and (b), all seeds together in (c)."
    )
    return _figure(
        f"growth-{arm}",
        f"How the store grows: {results.label(arm)}",
        caption,
        sentence,
        lambda: figures.growth(results, arm),
    )


def _network(results: Results, arm: str, embedder: Embedders | None) -> Figure:
    trained = results.seeds[0].trained[arm]
    links = trained.health.links
    total = sum(links.values())
    sentence = (
        f"{total - links['source to source']:,} of {total:,} links have an index at one end, "
        f"{links['index to index']:,} join two indexes."
    )
    caption = (
        f"{results.caption(results.seeds[:1], n=False)} One t-SNE layout, of the final store, serves all panels; only "
        "nearness means anything. Named indexes are sound: every link right, no member missing."
    )

    def draw() -> bytes:
        if embedder is None:
            raise Missing("the map was not asked for; `kbgym report` draws it.")
        return network.panels(trained, network.layout(trained, embedder(trained.settings.embedder)))

    return _figure(f"network-{arm}", f"The network that was built: {results.label(arm)}", caption, sentence, draw)


def worlds(results: Results) -> Table:
    """What was trained and asked on: the paper's table of benchmarks."""
    lines = []
    for seed in results.seeds:
        world = seed.world
        files = [CellSource(str((seed.folder / "world").relative_to(results.root)), "documents.jsonl, questions.jsonl")]
        values = [len(world.documents), len(world.questions), *(len(world.split(s)) for s in SPLITS)]
        names = ("documents", "questions", *SPLITS)
        cells = [
            number(f"worlds/seed-{seed.number}/{name}", value, f"number of {name}", files, 0)
            for name, value in zip(names, values, strict=True)
        ]
        asked = sum(len(seed.rows("flat", group)) for group in results.groups)
        probe = results.sources("flat", POOLED, "id", seeds=[seed])
        cells.append(number(f"worlds/seed-{seed.number}/probe", asked, "questions of all probe groups", probe, 0))
        lines.append(Line(f"seed {seed.number}", tuple(cells)))
    if results.kind == paper.KIND:
        theirs: list[Cell | None] = [
            published(f"worlds/{name}", value, 0)
            for name, value in zip(
                ("documents", "questions", *SPLITS, "probe"), (5864, 330, 150, 100, 50, 30, 136), strict=True
            )
        ]
        lines.append(Line("paper: KBGym", tuple(theirs), paper=True))
    documents = [len(seed.world.documents) for seed in results.seeds]
    given = results.plan is not None and not results.plan.people
    size = f"{min(documents):,}" + (f" to {max(documents):,}" if max(documents) > min(documents) else "")
    sentence = f"{'One given world' if given else 'Generated worlds'} of {size} one-sentence documents and no link."
    heads = ("documents", "questions", *SPLITS, "probe questions")
    return Table("worlds", "The worlds", heads, tuple(lines), results.caption(n=False), sentence, "world")


SPLITS = ("train", "test_in", "test_out", "eval")


def benchmarks(results: Results, other: Results | None) -> Table:
    """The gradient's three common points on both benchmarks, ours beside the paper's."""
    groups = ("trained", "one", "neither")
    lines: list[Line] = []
    said = []
    for one in (results, other):
        if one is None:
            continue
        name = one.world_kind.title
        for arm in one.trainings:
            cells: list[Cell | None] = []
            for group in groups:
                cells.append(arms.rho_cell(one, f"benchmarks/{one.kind}", arm, group) if group in one.groups else None)
                id = f"benchmarks/{one.kind}/{arm}/{group}/f1"
                cells.append(arms.mean_cell(one, id, arm, group, "f1") if group in one.groups else None)
            lines.append(Line(f"{name}, {one.label(arm)}", tuple(cells)))
            first = arms.rho(one.pairs(arm, "trained"))
            said.append(f"{name}, {one.label(arm)}: rho {first.value:.3f} on the trained group.")
    for name, rho, f1 in (
        ("KBGym", paper.RHO["trained-paper"], paper.F1["trained-paper"]),
        ("PhantomWiki", paper.PHANTOMWIKI_RHO, paper.PHANTOMWIKI_F1),
    ):
        cells = []
        for group in groups:
            cells += [
                published(f"benchmarks/{name}/{group}/rho", rho[group]),
                published(f"benchmarks/{name}/{group}/f1", f1[group]),
            ]
        lines.append(Line(f"paper: {name}", tuple(cells), paper=True))
    kinds = {one.kind for one in (results, other) if one is not None}
    if len(kinds) == 1:
        said.append("The other benchmark is not in this report: add its experiment with --beside.")
    heads = tuple(f"{what}, {LABELS[group]}" for group in groups for what in ("rho", "F1"))
    return Table(
        "benchmarks",
        "The same shape on both benchmarks?",
        heads,
        tuple(lines),
        f"{results.caption()}{f' Beside it: {other.caption()}' if other else ''} {paper.NOTE}",
        " ".join(said),
        "benchmark",
    )
