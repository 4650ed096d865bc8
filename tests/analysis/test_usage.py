"""A report on models: what they used, how often they were malformed, and when their tokens are paid back."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from fault_server import FaultServer
from llm_fixtures import world

from kbgym.analysis.cells import Cell
from kbgym.analysis.report import make_report
from kbgym.cli.main import app

pytestmark = pytest.mark.slow

FAULTS = ("prose", "wrong_tool")


def called(*arguments: str) -> None:
    found = CliRunner().invoke(app, [*arguments, "--quiet"])
    assert found.exit_code == 0, found.output


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FaultServer]:
    """A training and the exams of its gradient, played by a server that is malformed now and then."""
    folder = tmp_path_factory.mktemp("usage")
    world().save(folder / "world")
    with FaultServer(rate=0.03, faults=FAULTS) as server:
        paid = ("--set", f"base_url={server.url}", "--yes")
        agents = ("--agent", "llm:local/m")
        train = ("train", "--world", str(folder / "world"), "--out", str(folder / "run"), "--questions", "30")
        called(*train, "--epochs", "1", "--set", "embedder=hash", *agents, *paid)
        called("probe", str(folder / "run"), "--n", "3")
        for group in ("trained", "both", "one", "neither"):
            for store, name in ((folder / "run", "trained"), (f"{folder / 'run'}@0", "flat")):
                out = folder / "run" / "exams" / f"{name}-{group}.jsonl"
                out.parent.mkdir(exist_ok=True)
                called("exam", str(store), "--set", group, "--out", str(out), *agents, *paid)
    return folder / "run", server


def cells(run: Path) -> dict[str, Cell]:
    return {cell.id: cell for table in make_report(run).tables for cell in table.cells}


def test_the_malformed_rate_is_what_the_server_did(run: tuple[Path, FaultServer]) -> None:
    folder, server = run
    found = cells(folder)
    lines = ("trained-paper/forward", "trained-paper/backward", "flat/exam", "trained-paper/exam")
    requests = sum(float(found[f"usage/{line}/requests"].value or 0) for line in lines)
    malformed = sum(
        float(found[f"usage/{line}/malformed"].value or 0) * float(found[f"usage/{line}/requests"].value or 0)
        for line in lines
    )
    # The exams of the eval split during training are the server's too, but no line's.
    assert 0 < round(malformed) <= sum(server.injected.values())
    assert requests < server.answered + sum(server.injected.values())
    assert found["usage/flat/exam/passes"].value == found["usage/trained-paper/exam/passes"].value >= 8
    assert found["usage/flat/exam/malformed"].text.endswith("%")


def test_break_even_is_computed_from_real_tokens(run: tuple[Path, FaultServer]) -> None:
    folder, _ = run
    found = cells(folder)
    training = found["break-even/trained-paper/tokens/training"].value
    spent = sum(
        float(found[f"usage/trained-paper/{phase}/{kind}"].value or 0)
        for phase in ("forward", "backward")
        for kind in ("prompt", "completion")
    )
    assert training == spent > 0
    flat, mine = (
        sum(float(found[f"usage/{arm}/exam/{kind}"].value or 0) for kind in ("prompt", "completion"))
        for arm in ("flat", "trained-paper")
    )
    passes = float(found["usage/flat/exam/passes"].value or 0)
    cell = found["break-even/trained-paper/tokens/pooled"]
    if mine < flat:
        assert cell.value == pytest.approx(spent / ((flat - mine) / passes), abs=1)
    else:
        assert cell.text == "never"


def test_the_numbers_are_called_the_models(run: tuple[Path, FaultServer]) -> None:
    report = make_report(run[0])
    assert "reader llm:local/m, curator llm:local/m" in report.statement
    assert "None of them is a language model" not in report.statement
