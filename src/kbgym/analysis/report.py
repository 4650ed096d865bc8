"""The report: every table and figure of the paper's evaluation, ours beside the paper's, from an experiment or a run.

What an experiment does not have (no snapshots, no truth, no second arm, no matplotlib) is left out or named with its
reason; nothing is run here but replays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean

from kbgym.analysis import figures, network
from kbgym.analysis import published as paper
from kbgym.analysis.cells import Cell, CellSource, Line, Table, number, published, shown
from kbgym.analysis.curves import curve, eval_curve, examined, learning
from kbgym.analysis.kept_pairs import how_to_compare
from kbgym.analysis.no_store import no_store_note
from kbgym.analysis.page import Figure, Report, Section, exam_table, report_of_exams, sections, write
from kbgym.analysis.results import LABELS, POOLED, Results, open_results
from kbgym.analysis.retention import retention
from kbgym.analysis.tables import arms, groups, readers, stores, training, usage
from kbgym.analysis.tables.evidence import evidence
from kbgym.analysis.tables.readers import index_accounts
from kbgym.analysis.verdict import WORDS
from kbgym.errors import BadInput, Missing
from kbgym.experiments.experiment import FILE
from kbgym.sanitize import safe_text
from kbgym.search.embed import Embedder
from kbgym.worlds.world import SPLITS

Embedders = Callable[[str], Embedder]
TABLE_WORDS = (
    "In the tables: rho is the actions on a store over those on the flat store (B1), same questions: below 1 is "
    "cheaper; an arm is one way to make a store; coverage is the share of the documents an index leads to; EM counts "
    "answers that are right word for word; characters are what the reader was given to read. Training asked the "
    "questions of train and trained on, and never those of test_in, test_out, both keys, one key and neither (of the "
    "two things such a question names it touched so many). eval is asked between epochs (rounds of training), pooled "
    "is all groups together, and a seed is one draw of the world and of the questions."
)


def make_report(place: Path, embedder: Embedders | None = None, beside: Path | None = None) -> Report:
    """`embedder` makes the network map possible; `beside` is an experiment on the other benchmark to stand next to."""
    if not (place / FILE).exists() and not (place / "run.json").exists():
        return report_of_exams(place)
    results = open_results(place, compared=False)
    if results.plan is not None and results.plan.kind == "ablation":
        return _report(results, _ablation(results))
    if results.plan is not None and "flat" not in results.arms:
        raise BadInput(f"{place} has no whole exams of the flat store for every seed yet; run the experiment first.")
    other = open_results(beside) if beside else None
    if other is not None:
        other.base = results.root
    compared = results.groups != ()
    snapshots = [arm for arm in results.trainings if compared and examined(results.seeds[0], arm, results.groups)]
    title = "The experiment" if results.plan else "The run"
    found = sections(
        (title, [worlds(results), stores.arms(results) if compared else None, exam_table(place / "exams", place)]),
        (
            "E1: training dynamics",
            [
                *(training.edits(results, arm) for arm in results.trainings),
                *(part for arm in snapshots for part in (_learning(results, arm), learning(results, arm))),
                *(eval_curve(results, arm) for arm in results.trainings),
            ],
        ),
        (
            "E2: the key-coverage gradient" if results.gradient else "Flat against trained",
            [
                arms.gradient(results),
                _dots(results),
                arms.by_seed(results),
                groups.non_inferiority(results),
                groups.budget_split(results),
                benchmarks(results, other) if results.kind == paper.OTHER or results.beside_paper else None,
            ]
            if compared
            else [],
        ),
        ("Every reader", [readers.by_reader(results, group) for group in readers.SETS]),
        ("Evidence: what was found, whoever reads", [evidence(results) if compared else None]),
        (
            "Coverage is the currency",
            [
                groups.per_point(results),
                groups.point_ratios(results),
                stores.readings(results),
                groups.against_b3(results),
            ]
            if compared
            else [],
        ),
        ("E3: retention by class", [retention(results, arm) for arm in results.trainings]),
        (
            "E4: what was built",
            [
                *(_growth(results, arm) for arm in results.trainings),
                *(_network(results, arm, embedder) for arm in results.trainings[:1]),
                stores.store_audit(results),
                *(stores.index_quality(results, arm) for arm in results.trainings),
                index_accounts(results) if compared and results.plan is None else None,
                training.breaking_even(results) if compared else None,
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
    statement = f"Every number of ours here was produced by {results.agent}. " + (
        "None of them is a language model's. " if results.reference else ""
    )
    if results.beside_paper or results.kind == paper.OTHER:
        statement += "The paper's figures, where they stand beside ours, are gpt-5-mini's, one seed: compare shapes, "
        statement += "not levels."
    said = arms.in_short(results)
    notes = [f"In short. {said}", WORDS, TABLE_WORDS] if said else []
    notes += [
        f"{len(results.seeds)} seed{'s' if len(results.seeds) > 1 else ''}, {settings.questions} training questions, "
        f"each asked {_times(settings.epochs)}; at most {settings.forward_budget} actions to answer and "
        f"{settings.backward_budget} to edit after it; embedding {settings.embedder}. Intervals are 95%.",
        "Every number has an id (hover over it): `kbgym report FOLDER --explain ID` prints its formula and its rows.",
    ]
    notes += no_store_note(results) if results.groups else []
    if not results.groups:
        notes.append(f"What is missing: an exam of both stores. {_sentence(how_to_compare(results.root))}.")
    kept = results.seeds[0].kept
    if kept is not None and kept.left_out:
        who = ", ".join(sorted({exam.header.agent for exam in kept.left_out}))
        notes.append(
            f"{len(kept.left_out)} exams under other conditions (by {who}) are listed, and compared with nothing here."
        )
    if results.missing:
        notes.append(f"Not here: {'; '.join(f'{arm} ({_why(results, arm)})' for arm in results.missing)}.")
    return Report(
        f"kbgym: report of {'an experiment' if results.plan else 'a run'}", statement.strip(), tuple(notes), found
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _why(results: Results, arm: str) -> str:
    return str(results.seeds[0].arms.get(arm, {}).get("skipped", "not examined on every group and seed")).rstrip(".")


def _ablation(results: Results) -> tuple[Section, ...]:
    by = results.plan.touched if results.plan else 0
    which = f"the keys of {by} training questions decide the groups" if by else "drawn for the largest training set"
    drawn = f"The same questions for all: {which}, and no training saw one of the unseen."
    ends = {arm: curve(results, arm)[-1] for arm in results.trainings}
    sentence = " ".join(
        f"{results.label(arm)}: {last.spent:,.0f} actions buy {last.coverage:.1%} coverage, F1 {last.f1[POOLED]:.3f} "
        f"at {last.actions[POOLED]:.2f} actions and {last.characters[POOLED]:,.0f} characters a question."
        for arm, last in ends.items()
    )
    title, caption = "What training buys for the actions it spends", f"{results.caption()} {drawn}"
    parts: list[Table | Figure | None] = [
        _figure("ablation", title, caption, sentence, lambda: figures.ablation_curves(results)),
        stores.arms(results),
        arms.gradient(results),
        *(learning(results, arm) for arm in results.trainings),
    ]
    return sections((f"Ablation: {results.plan.vary if results.plan else ''}", parts))


def _figure(name: str, title: str, caption: str, sentence: str, draw: Callable[[], str | bytes]) -> Figure:
    try:
        picture = draw()
    except Missing as reason:
        return Figure(name, title, caption, sentence, missing=f"Left out: {reason}")
    if isinstance(picture, str):
        return Figure(name, title, caption, sentence, svg=picture)
    return Figure(name, title, caption, sentence, png=picture)


def _dots(results: Results) -> Figure:
    title, sentence = "The gradient with its intervals", arms.below_one(results)
    return _figure("gradient-dots", title, results.caption(), sentence, lambda: figures.gradient_dots(results))


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
    theirs = " Hollow: what the paper's text gives of its own curves." if results.beside_paper else ""
    caption = f"{results.caption()} Frozen stores from along the training, same questions.{many}{theirs}"
    title = f"Learning: {results.label(arm)}"
    draw = partial(figures.learning_panels, results, arm)
    return _figure(f"learning-figure-{arm}", title, caption, sentence, draw)


def _growth(results: Results, arm: str) -> Figure:
    found = [seed.trained[arm].trajectory for seed in results.seeds]
    ends = [(one.points[0], one.points[-1], one.degrees) for one in found]
    added = fmean(last.documents - first.documents for first, last, _ in ends)
    authored = fmean(last.authored for _, last, _ in ends)
    links = fmean(last.links for _, last, _ in ends)
    empty = fmean(degrees.empty for _, _, degrees in ends)
    theirs = " (the paper: 287 documents, 1,913 links, 43 empty)" if results.beside_paper else ""
    sentence = (
        f"The store gains {added:,.0f} documents and {links:,.0f} links a seed; {authored:,.0f} are indexes, "
        f"{empty:.1f} of them empty{theirs}."
    )
    how = "By replay of the trace; a line a seed in (a) and (b), all seeds together in (c)."
    title, caption = f"How the store grows: {results.label(arm)}", f"{results.caption(n=False)} {how}"
    return _figure(f"growth-{arm}", title, caption, sentence, partial(figures.growth, results, arm))


def _network(results: Results, arm: str, embedder: Embedders | None) -> Figure:
    trained = results.seeds[0].trained[arm]
    links = trained.health.links
    total = sum(links.values())
    sentence = (
        f"{total - links['source to source']:,} of {total:,} links have an index at one end, "
        f"{links['index to index']:,} join two indexes."
    )
    caption = (
        f"{results.caption(results.seeds[:1], n=False)} All panels share one layout, of the final store; only "
        "neighbourhoods are meaningful. Labelled indexes are correct: no wrong link, no missing member."
    )

    def draw() -> bytes:
        if embedder is None:
            raise Missing("the map was not asked for; `kbgym report` draws it.")
        return network.panels(trained, embedder(trained.settings.embedder))

    return _figure(f"network-{arm}", f"The network that was built: {results.label(arm)}", caption, sentence, draw)


def worlds(results: Results) -> Table:
    """What was trained and asked on: the paper's table of benchmarks."""
    lines = []
    for seed in results.seeds:
        world, id = seed.world, f"worlds/seed-{seed.number}"
        files = [CellSource(str((seed.folder / "world").relative_to(results.root)), "documents.jsonl, questions.jsonl")]
        counts = {"documents": len(world.documents), "questions": len(world.questions)}
        counts |= {name: len(world.split(name)) for name in SPLITS}
        cells = [number(f"{id}/{name}", count, f"number of {name}", files, 0) for name, count in counts.items()]
        asked = sum(len(seed.rows("flat", group)) for group in results.groups)
        probe = results.sources("flat", POOLED, "id", seeds=[seed])
        cells.append(number(f"{id}/probe", asked, "questions of all probe groups", probe, 0))
        lines.append(Line(f"seed {seed.number}", cells))
    if results.beside_paper:
        theirs = [published(f"worlds/{name}", value, 0) for name, value in paper.WORLD.items()]
        lines.append(Line("paper: KBGym", theirs, paper=True))
    documents = [len(seed.world.documents) for seed in results.seeds]
    given = results.plan is not None and not results.plan.people
    made = results.kind == paper.KIND
    size = f"{min(documents):,}" + (f" to {max(documents):,}" if max(documents) > min(documents) else "")
    if made:
        world_is = "One given world" if given else "Generated worlds"
        sentence = f"{world_is} of {size} one-sentence documents and no link."
    else:
        sentence = f"One world ({safe_text(results.world_kind.title)}) of {size} documents."
    heads = ("documents", "questions", *SPLITS, "probe questions")
    return Table("worlds", "The worlds", heads, lines, results.caption(n=False), sentence, "world")


def benchmarks(results: Results, other: Results | None) -> Table:
    """The gradient's three common points on both benchmarks, ours beside the paper's."""
    groups = ("trained", "one", "neither")
    lines: list[Line] = []
    said = []
    here = [one for one in (results, other) if one is not None]
    for one in here:
        name, table = one.world_kind.title, f"benchmarks/{one.kind}"
        for arm in one.trainings:
            cells: list[Cell | None] = []
            for group in groups:
                cells += [
                    arms.rho_cell(one, table, arm, group),
                    arms.mean_cell(one, f"{table}/{arm}/{group}/f1", arm, group, "f1"),
                ] if group in one.groups else [None, None]  # fmt: skip
            lines.append(Line(f"{name}, {one.label(arm)}", cells))
            first = arms.ratio_of(one, one.pairs(arm, "trained"))
            said.append(f"{name}, {one.label(arm)}: rho {first.value:.3f} on the trained group.")
    for name, rho, f1 in (
        ("KBGym", paper.RHO["trained-paper"], paper.F1["trained-paper"]),
        ("PhantomWiki", paper.PHANTOMWIKI_RHO, paper.PHANTOMWIKI_F1),
    ):
        theirs = [
            published(f"benchmarks/{name}/{group}/{what}", values[group])
            for group in groups
            for what, values in (("rho", rho), ("f1", f1))
        ]
        lines.append(Line(f"paper: {name}", theirs, paper=True))
    if len({one.kind for one in here}) == 1:
        said.append("The other benchmark is not in this report: add its experiment with --beside.")
    heads = [f"{what}, {LABELS[group]}" for group in groups for what in ("rho", "F1")]
    caption = f"{results.caption()}{f' Beside it: {other.caption()}' if other else ''} {paper.NOTE}"
    title = "The same shape on both benchmarks?"
    return Table("benchmarks", title, heads, lines, caption, " ".join(said), "benchmark")
