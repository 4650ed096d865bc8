"""The report: every table and figure of the paper's evaluation, ours beside the paper's, from an experiment or a run.

What an experiment does not have (no snapshots, no truth, no second arm, no matplotlib) is left out or named with its
reason; nothing is run here but replays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from kbgym.analysis import figures, network
from kbgym.analysis import published as paper
from kbgym.analysis.cells import Table, shown
from kbgym.analysis.curves import curve, eval_curve, examined, learning
from kbgym.analysis.page import Figure, Report, Section, sections, write
from kbgym.analysis.results import LABELS, POOLED, Results, Seed, how_to_compare, open_results
from kbgym.analysis.retention import retention
from kbgym.analysis.tables import arms, groups, readers, stores, training
from kbgym.analysis.verdict import WORDS
from kbgym.canonical import read_lines
from kbgym.errors import BadInput, Missing
from kbgym.experiments.experiment import FILE
from kbgym.sanitize import safe_text
from kbgym.search.embed import Embedder
from kbgym.training.exam import Row
from kbgym.training.exam_header import kept_exams
from kbgym.training.no_store import ARM, is_public, no_store_file

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
        (
            title,
            [
                training.worlds(results),
                stores.arms(results) if compared else None,
                readers.exam_table(place / "exams", place),
            ],
        ),
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
                arms.benchmarks(results, other) if results.kind == paper.OTHER or results.beside_paper else None,
            ]
            if compared
            else [],
        ),
        ("Every reader", [readers.by_reader(results, group) for group in readers.SETS]),
        ("Evidence: what was found, whoever reads", [readers.evidence(results) if compared else None]),
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
                readers.index_accounts(results) if compared and results.plan is None else None,
                training.breaking_even(results) if compared else None,
                training.model_usage(results),
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


def report_of_exams(place: Path) -> Report:
    """A folder that is no run and no experiment, but holds exams."""
    folder = place if kept_exams(place) else place / "exams"
    kept = kept_exams(folder)
    if not kept:
        raise BadInput(
            f"{place} is neither an experiment nor a run, and holds no exam that says what it is; make one with "
            f"`kbgym exam STORE --world WORLD --out {place}/NAME.jsonl`."
        )
    agents = ", ".join(sorted({safe_text(exam.header.agent) for exam in kept}))
    found = sections(("Exams", [readers.exam_table(folder, place), readers.comparisons(kept, place)]))
    notes = ("Every number has an id (hover over it): `kbgym report FOLDER --explain ID` prints where it came from.",)
    return Report("kbgym: report of exams", f"Every number here was produced by {agents}.", notes, found)


def no_store_note(results: Results) -> list[str]:
    """One note on a world whose text is public, none on any other."""
    if not any(is_public(seed.world) for seed in results.seeds):
        return []
    rows = [_no_store_rows(seed, group) for seed in results.seeds for group in results.groups]
    known = "The text of this world is public and models may know it"
    if not all(rows):
        how = (
            f"run the experiment again with --arms {ARM}"
            if results.plan is not None
            else "examine the run again with `kbgym exam --out exams/flat-GROUP.jsonl`, which asks without a store too"
        )
        return [f"{known}; its score without a store is missing: {how}."]
    flat = [seed.rows("flat", group) for seed in results.seeds for group in results.groups]
    return [
        f"{known}: without a store the same reader scores F1 {_f1(rows):.3f} on the same {sum(map(len, rows))} "
        f"questions, with the untrained store {_f1(flat):.3f}. Only what lies above the first number is the store's."
    ]


def _f1(groups: Sequence[Sequence[Row]]) -> float:
    scored = [row.f1 for rows in groups for row in rows if row.f1 is not None]
    return sum(scored) / len(scored) if scored else 0.0


def _no_store_rows(seed: Seed, group: str) -> Sequence[Row]:
    if seed.has(ARM, group):
        return seed.rows(ARM, group)
    beside = no_store_file(seed.file("flat", group))
    return tuple(read_lines(beside, Row)) if beside.exists() else ()
