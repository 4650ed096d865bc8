"""Comparisons of stores with intervals, and figures, for notebooks."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Literal

import msgspec

from kbgym.analysis.statistics import Interval
from kbgym.analysis.verdict import Finding, judge, shared_keys
from kbgym.api.factory import Player, embedder_named
from kbgym.api.workspace import Workspace, html_table
from kbgym.errors import BadInput

Drawing = Literal["gradient", "learning", "map"]


def _interval(one: Interval) -> str:
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


class Comparison(msgspec.Struct, frozen=True):
    """Two exams of the same questions: `rho` is actions here over actions there, `f1` the difference of mean F1.

    Both have a 95% interval, questions that share a key clustered. `finding` has everything else.
    """

    name: str
    other: str
    n: int
    rho: Interval
    f1: Interval
    finding: Finding

    def __repr__(self) -> str:
        scores = f"F1 {self.finding.f1_trained:.3f} against {self.finding.f1_flat:.3f}"
        return f"<{self.name} against {self.other}: rho {_interval(self.rho)}, {scores}, n = {self.n}>"

    def _repr_html_(self) -> str:
        found = self.finding
        rows = [
            ("", self.other, self.name, "95% CI"),
            ("actions", f"{found.actions_flat:.2f}", f"{found.actions_trained:.2f}", f"rho {_interval(self.rho)}"),
            ("F1", f"{found.f1_flat:.3f}", f"{found.f1_trained:.3f}", f"difference {_interval(self.f1)}"),
        ]
        return html_table(f"n = {self.n}: {found.sentence}", rows)


class Picture(str):
    """A figure as SVG; notebooks show it, `save` writes it."""

    _repr_svg_ = str.__str__

    def __repr__(self) -> str:
        return f"<Picture, SVG, {len(self):,} bytes>"

    def save(self, path: str) -> None:
        Path(path).write_text(self, encoding="utf-8")


def compare(here: Workspace, there: Workspace, set: str, reader: Player) -> Comparison:
    """Examine both stores on the same questions; kept exams are reused."""
    keys = shared_keys(here.world, here.questions(set)) if here.world is not None else {}
    finding = judge(here.examine(reader, set).rows, there.examine(reader, set).rows, keys)
    return Comparison(here.name, there.name, finding.n, finding.rho, finding.gain, finding)


def draw(run: Workspace, what: Drawing) -> Picture:
    """Draw the gradient of a run's exams, its growth in training, or the map of a store."""
    from kbgym.analysis.page import as_svg, gradient_dots, plotting
    from kbgym.analysis.results import open_results

    if what == "map":
        return Picture(_map(run))
    if run.folder is None or run.run is None:
        raise BadInput(f"{run.name} is no run; this figure needs its training and exams.")
    results = open_results(run.folder, compared=what == "gradient")
    if what == "gradient":
        return Picture(gradient_dots(results))
    points = results.seeds[0].trained[results.trainings[0]].trajectory.points
    figure, axis = plotting().subplots(figsize=(6, 3))
    axis.plot([point.iteration for point in points], [point.links for point in points])
    axis.set_xlabel("training iteration")
    axis.set_ylabel("links")
    return Picture(as_svg(figure))


def _map(run: Workspace) -> str:
    """Return documents placed by similarity as SVG, those that agents wrote larger and with their links."""
    from kbgym.analysis.network import layout

    records = list(run.store)
    spots = layout([record.text for record in records], embedder_named(run.settings.embedder))
    at = {record.id: (400 + 380 * x, 300 - 280 * y) for record, (x, y) in zip(records, spots, strict=True)}
    lines, dots = [], []
    for record in records:
        (x, y), written = at[record.id], record.flag == "authored"
        lines += ["M{:.0f} {:.0f}L{:.0f} {:.0f}".format(x, y, *at[to]) for to in record.links] if written else []
        size, colour = (4, "#e08a00") if written else (1.5, "#9db8d2")
        title = f"<title>{escape(record.text)}</title>"
        dots.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{size}" fill="{colour}">{title}</circle>')
    links = f'<path d="{"".join(lines)}" stroke="#007a5a" stroke-opacity="0.2" fill="none"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 600">{links}{"".join(dots)}</svg>'
