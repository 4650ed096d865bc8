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
    """Return the anchors of a page's headings, on the site and in a repository browser."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_every_make_target_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)(?=`| *#|$)", pages, re.MULTILINE))
    assert {"demo", "test", "docs"} <= named <= targets


def test_the_image_copies_files_that_exist_and_are_not_ignored():
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    sources = [
        source
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ")
        for source in line.split()[1:-1]
    ]
    assert len(sources) > 8
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(source == kept[1:] or source.startswith(f"{kept[1:]}/") for kept in ignored), source
