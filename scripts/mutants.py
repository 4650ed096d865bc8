"""Small faults put into a copy of the core, one at a time: does a test fail? The share that is caught is the score.

    python scripts/mutants.py [--n 16] [--module 'trace/*'] [--seed 0] [--jobs 2] [--least 85] [--out runs/mutants.json]

`mutants_faults.py` says what a fault is. Each module gives a fixed sample; a fault is tried against the tests that call
the function it is in (found once, by tracing), quickest first, up to a limit of seconds. Tests that need a database or
are marked slow are left out. What no test catches is printed; either a test is written, or the fault is accepted in
`mutants_accepted.toml` with the reason. Only temporary copies of the tree are ever changed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import multiprocessing
import os
import py_compile
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from mutants_faults import Fault, faults

ROOT = Path(__file__).resolve().parent.parent
MODULES = "store/*.py gym/*.py trace/*.py training/*.py analysis/statistics.py".split()
# Where tests of these modules are; which of them reach a function is found by running them.
TESTS = """tests/store tests/trace tests/training tests/golden tests/analysis/test_statistics.py
    tests/test_actions.py tests/test_environment.py tests/test_codes.py tests/test_episode.py tests/test_grade.py
    tests/test_links.py tests/test_observations.py tests/test_ranking.py tests/test_tools.py tests/search/test_slot.py
    tests/serve/test_serve_acting.py tests/serve/test_serve_gate.py tests/serve/test_serve_online.py
    tests/cli/test_history.py tests/corpus/test_reimport.py tests/corpus/test_update.py""".split()
# They are there too, and long, and about something else.
TESTS += [f"--ignore=tests/training/test_{name}.py" for name in ("engines", "experiment", "ray", "suggest")]
SECONDS = 10.0  # of a processor, for the tests of one fault, at most
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "runs", "worlds-out", "__pycache__", ".*_cache", ".hypothesis")
AHEAD = ("numpy", "msgspec", "scipy.stats", "hypothesis.extra.numpy", "asyncio")  # imported once, not for every fault
OPTIONS = "-q --tb=line --timeout=120 -p no:cacheprovider".split()
OPTIONS += "-p pytest_timeout -p xdist.plugin -p _hypothesis_pytestplugin".split()  # and no other plugin: they are slow


class Test(NamedTuple):
    """A test as it ran without a fault: what it cost, and the functions it called, by file and first line."""

    id: str
    seconds: float
    called: frozenset[tuple[str, int]]

    @property
    def file(self) -> str:
        return self.id.split("::")[0]


class Plugin:
    """Chooses tests and their order, or notes what each test calls, what its fixtures call included."""

    def __init__(self, source: Path, chosen: Sequence[str] | None) -> None:
        self._source, self._order = f"{source}/", {id: place for place, id in enumerate(chosen or ())}
        self._tracing = chosen is None
        self._called: set[Any] = set()
        self._fixtures: dict[str, set[Any]] = {}
        self._passed = False
        self.tests: list[Test] = []

    def pytest_sessionstart(self) -> None:
        # The same examples every time, and none remembered from the fault before.
        settings.register_profile("mutants", settings.get_profile("kbgym"), derandomize=True, database=None)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.get_closest_marker("slow") is None]
        if not self._tracing:
            items[:] = [item for item in items if item.nodeid in self._order]
            items.sort(key=lambda item: self._order[item.nodeid])

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        self._called.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        before, self._called = self._called, set()
        try:
            return (yield)
        finally:
            self._fixtures.setdefault(fixturedef.argname, set()).update(self._called)
            self._called = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self._called, self._passed, started = set(), False, sum(os.times()[:4])
        if self._tracing:
            threading.settrace(self._note)
            sys.settrace(self._note)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            if self._passed:
                codes = self._called.union(*(self._fixtures.get(name, ()) for name in item.fixturenames))
                here = [code for code in codes if code.co_filename.startswith(self._source)]
                called = frozenset((code.co_filename[len(self._source) :], code.co_firstlineno) for code in here)
                self.tests.append(Test(item.nodeid, sum(os.times()[:4]) - started, called))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self._passed = report.passed


def run_tests(tree: Path, files: Sequence[str], limit: float, chosen: Sequence[str] | None = None) -> int | None:
    """Run tests in a process group of their own; gives pytest's exit code, or none when they never end.

    The chosen ones up to the first failure; without a choice all, and what they called is written beside the tree.
    `limit` are seconds of the processor, so that a busy machine catches no more faults than an idle one.
    """
    child = os.fork()
    if not child:
        code = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
            with (tree.parent / f"{tree.name}.txt").open("w") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            os.chdir(tree)
            sys.path.insert(0, str(tree / "src"))
            sys.dont_write_bytecode = True
            sys.modules["pgserver"] = None  # type: ignore[assignment]
            os.environ |= {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            plugin = Plugin(tree / "src" / "kbgym", chosen)
            if chosen is None:
                code = int(pytest.main([*OPTIONS, *files], plugins=[plugin]))
                found = [(test.id, test.seconds, sorted(test.called)) for test in plugin.tests]
                (tree.parent / "called.json").write_text(json.dumps(found))
            else:  # a file at a time: most faults need no more than the first
                codes = (int(pytest.main([*OPTIONS, "-x", file], plugins=[plugin])) for file in files)
                code = next((code for code in codes if code not in (0, 5)), 0)
        finally:
            os._exit(code)
    deadline = time.monotonic() + 10 * limit
    done, status = 0, 0
    while not done and time.monotonic() < deadline:
        time.sleep(0.01)
        done, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # whatever the tests left running, too
    if not done:
        os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if done else None


def copy_tree(base: Path) -> Path:
    """A copy of the tree for this process, compiled so that only a file with a fault in it is compiled again."""
    tree = base / f"tree{os.getpid()}"
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    for file in (*tree.glob("src/**/*.py"), *tree.glob("tests/**/*.py")):
        py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    return tree


def called_by_tests(tree: Path) -> list[Test]:
    """Every test, run once without a fault."""
    code = run_tests(tree, TESTS, 1200)
    if code not in (0, 1):
        sys.exit(f"the tests do not run without a fault:\n{(tree.parent / f'{tree.name}.txt').read_text()[-3000:]}")
    found = json.loads((tree.parent / "called.json").read_bytes())
    return [Test(id, seconds, frozenset((file, line) for file, line in called)) for id, seconds, called in found]


def tests_for(module: str, fault: Fault, tests: Sequence[Test]) -> list[Test]:
    """The tests that call the function with the fault; files named after the module first, then the quickest."""
    calling = [test for test in tests if (module, fault.function) in test.called]
    if not fault.function:  # outside of functions: whoever calls anything there, or is of the same part
        inside = [test for test in tests if any(file == module for file, _ in test.called)]
        calling = inside or [test for test in tests if test.id.split("/")[1] in (module.split("/")[0], "golden")]
    taken: list[Test] = []
    for test in sorted(calling, key=lambda test: test.seconds):
        if not taken or sum(other.seconds for other in taken) + test.seconds <= SECONDS:
            taken.append(test)
    files: dict[str, float] = {}
    for test in taken:
        files[test.file] = files.get(test.file, 0.0) + test.seconds
    name = Path(module).stem
    return sorted(taken, key=lambda test: (name not in test.file, files[test.file], test.file, test.seconds))


def _start(base: Path) -> None:
    global _tree
    _tree = copy_tree(base)


def survives(work: tuple[str, Fault, Sequence[Test]]) -> bool:
    """Put one fault into this process's tree, run the tests, take it out again."""
    module, fault, tests = work
    file = _tree / "src" / "kbgym" / module
    compiled = Path(importlib.util.cache_from_source(str(file)))
    source, kept = file.read_bytes(), compiled.read_bytes()
    compiled.unlink()
    file.write_bytes(fault.applied(source))
    try:
        files = list(dict.fromkeys(test.file for test in tests))
        return not files or run_tests(_tree, files, 20 + 4 * SECONDS, [test.id for test in tests]) == 0
    finally:
        file.write_bytes(source)
        compiled.write_bytes(kept)


def sampled(n: int, seed: int, wanted: Sequence[str]) -> Iterator[tuple[str, Fault]]:
    """`n` faults of each module: by what a line says, not where it stands, so that a move changes no sample."""
    source = ROOT / "src" / "kbgym"
    for path in (path for pattern in MODULES for path in sorted(source.glob(pattern))):
        module = str(path.relative_to(source))
        if any(fnmatch(module, pattern) for pattern in wanted):
            drawn = sorted(
                faults(path.read_bytes()),
                key=lambda f: hashlib.sha256(f"{seed}:{f.text}:{f.change}:{f.nth}".encode()).digest(),
            )
            yield from ((module, fault) for fault in sorted(drawn[:n], key=lambda fault: fault.start))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=16, help="faults a module")
    parser.add_argument("--module", nargs="*", default=["*"], help="only these, as patterns below src/kbgym")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.0, help="exit 1 below this score")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "mutants.json")
    given = parser.parse_args()
    with Path(__file__).with_name("mutants_accepted.toml").open("rb") as file:
        listed = tomllib.load(file)["accepted"]
    accepted = {(row["module"], row["line"], row["change"]): row["reason"] for row in listed}
    drawn = list(sampled(given.n, given.seed, given.module))
    tried = [(module, fault) for module, fault in drawn if (module, fault.text, fault.change) not in accepted]
    survivors: list[tuple[str, Fault]] = []
    for name in AHEAD:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="kbgym-mutants-") as base:
        tests = called_by_tests(copy_tree(Path(base)))
        print(f"{len(tests)} tests, {len(tried)} faults", file=sys.stderr, flush=True)
        work = [(module, fault, tests_for(module, fault, tests)) for module, fault in tried]
        with multiprocessing.get_context("fork").Pool(given.jobs, _start, (Path(base),)) as pool:
            for (module, fault, some), alive in zip(work, pool.imap(survives, work), strict=True):
                if alive:
                    survivors.append((module, fault))
                    said = f"{module}:{fault.line}: {fault.change} ({len(some)} tests): {fault.text}"
                    print(said, file=sys.stderr, flush=True)
    report(given, drawn, tried, survivors, accepted)


def report(
    given: argparse.Namespace,
    drawn: Sequence[tuple[str, Fault]],
    tried: Sequence[tuple[str, Fault]],
    survivors: Sequence[tuple[str, Fault]],
    accepted: Mapping[tuple[str, str, str], str],
) -> None:
    """The table, the faults that no test caught, and those that need not be caught with the reason; and the file."""

    def score(of: Sequence[Any], alive: Sequence[Any]) -> float:
        return 100 * (1 - len(alive) / max(1, len(of)))

    print(f"{given.n} faults a module at most, seed {given.seed}; caught by a test, of those not accepted.\n")
    print("| module | faults | accepted | tried | caught | score |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in [*dict.fromkeys(module for module, _ in drawn), "all"]:
        rows = [[row for row in some if name in (row[0], "all")] for some in (drawn, tried, survivors)]
        faults_, of, alive = rows
        caught = len(of) - len(alive)
        print(
            f"| {name} | {len(faults_)} | {len(faults_) - len(of)} | {len(of)} | {caught} | {score(of, alive):.0f}% |"
        )
    print("\nCaught by no test:" if survivors else "\nEvery fault that was tried is caught.")
    for module, fault in survivors:
        print(f"- {module}: {fault.change}: `{fault.text}`")
    drawn_accepted = [(*row, reason) for row in drawn if (reason := accepted.get((row[0], row[1].text, row[1].change)))]
    print("\nAccepted:" if drawn_accepted else "\nNone was accepted.")
    for module, fault, reason in drawn_accepted:
        print(f"- {module}: {fault.change}: `{fault.text}`: {reason}")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    lost = [{"module": module, **fault._asdict()} for module, fault in survivors]
    given.out.write_text(json.dumps({"score": score(tried, survivors), "survivors": lost}, indent=1) + "\n")
    if score(tried, survivors) < given.least:
        sys.exit(f"the score {score(tried, survivors):.1f}% is below {given.least:g}%")


if __name__ == "__main__":
    main()
