"""The documentation is true: every make target exists, every link leads somewhere, every table was measured.

Its commands are run by test_documented_commands.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documented import PAGES, ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        led = page.parent / target if target else page
        assert led.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(led), f"{page.name} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """What its headings are called in a link, on the site and where the sources are shown."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_every_make_target_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)(?=`| *#|$)", pages, re.MULTILINE))
    assert {"demo", "test", "docs"} <= named <= targets


def test_what_is_said_of_the_example_corpus_was_measured():
    """The table in docs/your-own-documents.md is the benchmark's, row by row."""
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    measured = [cells for line in results.splitlines() if (cells := _cells(line))[:1] == ["skarn, unseen"]]
    kept = {(c[3].partition(", ")[2], c[4], c[6], c[7] or "1", c[8] or "1") for c in measured}
    page = (ROOT / "docs" / "your-own-documents.md").read_text(encoding="utf-8")
    table = page.partition("| store | links |")[2].partition("\n\n")[0]
    said = [tuple(_cells(line)[1:]) for line in table.splitlines()[2:]]
    assert len(said) == 5 and set(said) <= kept


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
