"""The documentation is true: every command in an `sh` block runs, every make target exists, every link leads somewhere.

A `python` block that starts with `# name.py` is written to that file first, as a reader would.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


# What a page may speak of without making it.
BEFORE = {
    "worlds-out/w0": ["kbgym generate --people 500 --seed 0 --out worlds-out/w0"],
    "runs/first": [
        "kbgym generate --people 80 --seed 4 --out worlds-out/w4",
        "kbgym train --world worlds-out/w4 --out runs/first --questions 20 --epochs 1",
    ],
}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    joined = "\n".join(blocks(page, "sh")).replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_and_make_target_exists(page):
    from kbgym.cli.main import VERBS

    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for command in commands(page):
        words = shlex.split(command, comments=True)
        if words[0] == "make":
            assert words[1] in targets, command
        elif words[0] == "kbgym":
            assert words[1] in VERBS, command
        else:
            assert words[0] in ("cp", "mv", "sed"), f"{page.name} has a command nobody tests: {command}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [page for page in PAGES if any("kbgym" in c for c in commands(page))], ids=str)
def test_every_command_runs(page, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for code in blocks(page, "python"):
        if match := re.match(r"# (\S+\.py)\n", code):
            (tmp_path / match[1]).write_text(code, encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f".:{ROOT / 'src'}",
    }
    run = [command for command in commands(page) if not command.startswith("make")]
    for place, made in BEFORE.items():
        if place in page.read_text(encoding="utf-8") and not any(f"--out {place}" in command for command in run):
            run = [*made, *run]
    for command in run:
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_file_tree_lists_every_source_file():
    script = ROOT / "scripts" / "file_tree.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr.strip()}: run python scripts/file_tree.py"


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
