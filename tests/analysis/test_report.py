"""The report as files: one page that needs nothing, numbers that say where they came from, and a real browser."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import pytest
from experiments import small_experiment

from kbgym.analysis.cells import Cell, CellSource, as_csv, explain, number, shown
from kbgym.analysis.page import Figure, write
from kbgym.analysis.report import make_report, write_report
from kbgym.analysis.results import open_results
from kbgym.canonical import decode
from kbgym.errors import BadInput

TABLES = (
    "worlds arms edits-trained-paper edits-trained-class learning-trained-paper gradient seeds budget "
    "coverage readings readers-pooled paper retention-trained-paper audit index-quality-trained-paper break-even"
).split()
FIGURES = ["gradient-dots"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_experiment(tmp_path_factory.mktemp("report") / "exp")


@pytest.fixture(scope="module")
def report(folder):
    """Every table and every figure. It takes half a minute, so tests that use it are slow."""
    made = make_report(folder)
    write(made, folder / "report")
    return made


@pytest.fixture(scope="module")
def page(folder, report):
    return (folder / "report" / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def cells(folder, report):
    return decode((folder / "report" / "cells.json").read_bytes(), dict[str, Cell])


@pytest.mark.slow
def test_every_table_and_figure_is_there(folder, page):
    place = folder / "report"
    assert {file.stem for file in (place / "tables").glob("*.csv")} >= set(TABLES)
    assert {file.stem for file in (place / "figures").iterdir()} >= set(FIGURES)
    for name in (*TABLES, *FIGURES):
        assert f'id="{name}"' in page


@pytest.mark.slow
def test_the_page_needs_nothing_else(page):
    loads = re.findall(r"""(?:src|href)=["']([^"'#]+)""", page)
    assert all(place.startswith("data:") for place in loads)
    assert "<script" not in page and "@import" not in page and "url(http" not in page


@pytest.mark.slow
def test_it_says_who_produced_the_numbers(report, page):
    assert "None of them is a language model" in page and "gpt-5-mini" in page
    for part in (*report.tables, *report.figures):
        caption = part.caption.casefold()
        assert ("reference agents" in caption and "seeds 0, 1" in caption) or "seed 0" in caption
        assert part.sentence[-1:] in ("", ".") and "nan" not in part.sentence


@pytest.mark.slow
def test_each_cell_has_a_formula_and_its_rows(folder, cells):
    assert len(cells) > 800
    for id, cell in cells.items():
        assert cell.formula and (cell.sources or id.startswith(("paper/", "beside/", "grade/"))), id
        for source in cell.sources:
            assert (folder / source.file).exists(), (id, source.file)


@pytest.mark.slow
def test_a_cell_is_explained_down_to_its_rows(folder, cells):
    text = "\n".join(explain(folder, cells, "gradient/trained-paper/both/rho"))
    rows = [line for line in text.splitlines() if line.startswith("           actions=")]
    asked = sum(len((folder / f"seed-{n}/probe/both.jsonl").read_text().splitlines()) for n in (0, 1))
    assert len(rows) == 2 * asked > 0 and "the seed as the unit" in text
    mine = sum(int(line.split("=")[1].split()[0]) for line in _under(text, "trained-paper-both"))
    flat = sum(int(line.split("=")[1].split()[0]) for line in _under(text, "flat-both"))
    assert cells["gradient/trained-paper/both/rho"].value == pytest.approx(mine / flat)
    with pytest.raises(BadInput, match="there is no cell 'gradient/nobody/rho'"):
        explain(folder, cells, "gradient/nobody/rho")


def _under(text: str, name: str) -> list[str]:
    found, inside = [], False
    for line in text.splitlines():
        if line.startswith("from"):
            inside = f"/{name}.jsonl" in line
        elif inside:
            found.append(line)
    return found


@pytest.mark.slow
def test_the_csv_holds_what_the_table_shows(folder, cells):
    with (folder / "report" / "tables" / "gradient.csv").open() as file:
        rows = list(csv.DictReader(file))
    row = next(r for r in rows if r["store"] == "Trained (paper)" and r["block"].startswith("rho"))
    cell = cells["gradient/trained-paper/both/rho"]
    assert (float(row["both keys"]), float(row["both keys low"])) == (cell.value, cell.low)


@pytest.mark.slow
def test_the_same_experiment_gives_the_same_report(folder, report, tmp_path):
    write_report(folder, tmp_path / "again")
    for file in sorted((folder / "report").rglob("*")):
        if file.is_file():
            assert (tmp_path / "again" / file.relative_to(folder / "report")).read_bytes() == file.read_bytes(), file


def test_without_matplotlib_the_tables_remain(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    report = make_report(folder)
    assert all(isinstance(figure, Figure) and "matplotlib" in figure.missing for figure in report.figures[:3])
    assert len(report.tables) >= len(TABLES)


def test_a_folder_without_exams_is_refused(folder, tmp_path):
    with pytest.raises(BadInput, match="neither an experiment nor a run"):
        make_report(tmp_path)
    shutil.copytree(folder / "seed-0" / "trained-paper", tmp_path / "run")
    with pytest.raises(BadInput, match="no exam of the flat and the trained store"):
        open_results(tmp_path / "run")


def test_numbers_are_shown_plainly():
    assert [shown(v) for v in (0.5, -0.5, -0.0001, None, float("inf"))] == ["0.500", "−0.500", "0.000", "–", "∞"]
    assert shown(0.2764, 3, True) == "27.6%" and shown(12345.6, 0) == "12,346"
    assert number("a", 1.0, "f", [CellSource("x", "y")]).sources == (CellSource("x", "y"),)


@pytest.mark.slow
def test_csv_without_intervals_has_one_column_each(report):
    table = next(t for t in report.tables if t.name == "worlds")
    assert as_csv(table).splitlines()[0].startswith("block,world,documents,questions,train")


@pytest.mark.slow
def test_a_real_browser_shows_it_without_complaint(folder, report):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if chromium is None:
        pytest.skip("no Chromium on this machine: scripts/system_packages.sh installs it")
    said: list[str] = []
    asked: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1280, "height": 900})
        view.on("console", lambda message: said.append(message.text))
        view.on("pageerror", lambda error: said.append(str(error)))
        view.on("request", lambda request: asked.append(request.url))
        view.goto(Path(folder / "report" / "report.html").resolve().as_uri())
        view.wait_for_load_state("networkidle")
        figures = view.locator("figure")
        boxes = [figures.nth(at).bounding_box() for at in range(figures.count())]
        wide = view.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        images = view.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 100)")
        cell = view.locator("[id='gradient/trained-paper/both/rho']").inner_text()
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len(boxes) >= len(FIGURES) and all(box and box["width"] > 300 and box["height"] > 150 for box in boxes)
    assert wide and images and "[" in cell
