"""The site: every page is in its navigation, and it builds without a warning and fetches nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import kbgym
from kbgym.cli.main import VERBS

ROOT = Path(__file__).resolve().parent.parent
FETCHED = re.compile(r"<(?:link|script|img|iframe|source|video)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"'> ]+)")

ENTRY = re.compile(r'href="[^#"][^"]*" class="md-nav__link">\s*<span class="md-ellipsis">\s*([^<]+?)\s*<')


def test_every_page_is_in_the_navigation():
    listed = set(
        re.findall(r"^ +- (?:.+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    )
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    made = {"commands.md", "api.md", "files.md", "benchmarks.md", "changelog.md"}  # by scripts/site_pages.py
    assert listed - pages == made
    assert pages <= listed


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra docs is not installed")
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path):
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    pages = {page.name: page.read_text(encoding="utf-8") for page in tmp_path.glob("*.html")}
    assert {name: FETCHED.findall(text) for name, text in pages.items() if FETCHED.search(text)} == {}
    titles = ENTRY.findall(pages["index.html"])
    assert len(titles) > 25 and len(set(titles)) == len(titles), titles
    assert kbgym.__version__ in pages["index.html"]
    assert all(f'id="{verb}' in pages["commands.html"] for verb in VERBS)
    assert all(f'.{name}"' in pages["api.html"] for name in kbgym.__all__ if name != "__version__")
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000
