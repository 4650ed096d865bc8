"""report.html of a hostile experiment, in a real browser: it shows everything and runs nothing."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest
from hostile import ALL, hostile_experiment

from kbgym.analysis.page import Report, Section, to_html
from kbgym.analysis.report import write_report
from kbgym.errors import Damaged

sys.path.append(str(Path(__file__).parents[1] / "viewer"))
from browsing import browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(hostile_experiment(tmp_path_factory.mktemp("report") / "exp"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_in_it_is_executed(report: Path) -> None:
    with browser() as chromium:
        page = chromium.new_page()  # type: ignore[attr-defined]
        asked: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(report.as_uri())
        page.wait_for_load_state("networkidle")
        for link in page.query_selector_all("nav a")[:5]:
            link.click()
        assert page.evaluate("window.broken") is None
        assert page.evaluate("document.querySelectorAll('script, iframe, object, embed, form').length") == 0
        handlers = "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => /^on/i.test(a.name)))"
        assert page.evaluate(f"{handlers}.length") == 0
        text = page.inner_text("body")
        assert "<script>window.broken = 1</script>" in text, "it is shown, as what it is"
        assert page.query_selector("table td") is not None and page.query_selector("figure svg") is not None
        assert complaints == [] and [url for url in asked if not url.startswith(("file:", "data:"))] == []
        pictures = sorted((report.parent / "figures").glob("*.svg"))
        assert pictures
        for picture in pictures:  # opened by themselves they have no policy
            page.goto(picture.as_uri())
            assert page.evaluate("window.broken") is None
            assert page.evaluate("document.querySelectorAll('script, foreignObject, iframe').length") == 0


@pytest.mark.slow
def test_tables_hold_no_formula(report: Path) -> None:
    for file in (report.parent / "tables").glob("*.csv"):
        with file.open(encoding="utf-8", newline="") as rows:
            for row in csv.reader(rows):
                for cell in row:
                    assert not cell.startswith(("=", "@", "+")) and (not cell.startswith("-") or float(cell) <= 0)


def test_a_page_allows_itself_nothing() -> None:
    page = to_html(Report(ALL, ALL, (f"`{ALL}`",), (Section(ALL, ()),)))
    assert "<script" not in page and "default-src 'none'" in page.partition("</head>")[0]


def test_a_run_whose_names_are_paths(tmp_path: Path) -> None:
    import json

    place = tmp_path / "run"
    place.mkdir()
    for strategy in ("../../../out", "a/b", "x\x00", "", ".."):
        header = {"settings": {"strategy": strategy}, "world": "", "kbgym": 1}
        (place / "run.json").write_text(json.dumps(header), encoding="utf-8")
        with pytest.raises(Damaged, match="is not a valid name"):
            write_report(place)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
