"""`kbgym store prune`, the audit's accounts, and `kbgym log` where lessons ran side by side."""

from __future__ import annotations

import json
import shutil

import pytest

from kbgym.trace.folder import StoreFolder
from kbgym.worlds.people import generate
from kbgym.worlds.splits import Sizes

SMALL = ["--set", "embedder=hash", "--questions", "12", "--epochs", "1", "--n", "10"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds") / "w"
    generate(60, 0, Sizes(train=20, test_in=12, test_out=4, eval_in=2, eval_out=2)).save(folder)
    return folder


@pytest.fixture(scope="module")
def proved(world, tmp_path_factory):
    from kbgym.cli.main import run

    out = tmp_path_factory.mktemp("runs") / "run"
    with pytest.raises(SystemExit) as stopped:
        run(["prove", str(world), "--out", str(out), *SMALL, "--quiet"])
    assert not stopped.value.code
    return out


def test_the_audit_accounts_for_every_index(proved, kbgym):
    found = json.loads(kbgym("audit", proved, "--json")[1])
    verdict = {one["id"]: one for one in json.loads((proved / "verdict.json").read_text())["indexes"]}
    assert found["exams"]["n"] == 20 and len(found["indexes"]) == len(verdict)
    for one in found["indexes"]:
        for name in ("opened", "questions", "needed", "saved", "f1"):
            ours, theirs = one[name], verdict[one["id"]][name]
            assert sorted(ours) == sorted(theirs) if isinstance(ours, list) else ours == theirs
        assert one["complete"].endswith("by the world's facts") or one["complete"].startswith("not known: ")
    used = [one for one in found["indexes"] if one["questions"]]
    assert used and all(one["opened"] >= len(one["questions"]) for one in used)
    assert any(one["last_used"] for one in found["indexes"])
    assert f"kbgym store prune {proved} --unused --dry-run" in kbgym("audit", proved)[1]


def test_pruning_is_one_iteration_that_can_be_undone(proved, tmp_path, kbgym):
    run = shutil.copytree(proved, tmp_path / "run")
    before = StoreFolder(run).store().fingerprint
    indexes = json.loads((run / "verdict.json").read_text())["indexes"]
    unused = {one["id"] for one in indexes if not one["questions"]}
    code, text, _ = kbgym("store", "prune", run, "--unused", "--dry-run", "--json")
    assert code == 0 and set(json.loads(text)["pruned"]) == unused and StoreFolder(run).store().fingerprint == before
    code, text, _ = kbgym("store", "prune", run, "--unused", "--json")
    done = json.loads(text)
    assert code == 0 and done["iteration"] == 13 and not unused & {record.id for record in StoreFolder(run).store()}
    assert kbgym("store", "replay", run, "--quiet")[0] == 0
    code, _, error = kbgym("store", "prune", run, "--unused")
    assert code == 2 and "store as it is now" in error, "exams of the store before say nothing of this one"
    assert kbgym("store", "rollback", run, "--to", 12, "--quiet")[0] == 0
    assert StoreFolder(run).store().fingerprint == before
    assert kbgym("store", "prune", run)[0] == 2 and kbgym("store", "prune", tmp_path, "--unused")[0] == 2


def test_what_was_never_opened_makes_no_difference_when_it_is_gone(proved, tmp_path, kbgym):
    """Unless it stood in the way of a search: accuracy is not lower without it."""
    run = shutil.copytree(proved, tmp_path / "run")
    assert kbgym("store", "prune", run, "--unused", "--quiet")[0] == 0
    found = {}
    for place in (proved, run):
        rows = tmp_path / f"{place.parent.name}.jsonl"
        _, text, _ = kbgym("exam", place, "--set", "test_in", "--out", rows, "--json")
        found[place] = json.loads(text)
    assert found[run]["f1"] >= found[proved]["f1"]


def test_the_log_goes_by_commit_with_lessons_side_by_side(world, tmp_path, kbgym):
    run = tmp_path / "run"
    train = ["train", "--world", world, "--out", run, "--set", "embedder=hash", "--questions", "12", "--epochs", "1"]
    assert kbgym(*train, "--set", "batch_size=4", "--quiet")[0] == 0
    code, out, _ = kbgym("store", "log", run)
    lines = out.splitlines()
    assert code == 0 and [int(line.split()[0].strip("x")) for line in lines] == list(range(1, 13))
    for line in lines:
        links = int(line.split(" documents ")[1].split(" links")[0].replace(",", ""))
        assert links == StoreFolder(run).store(int(line.split()[0])).links, "the number in front is that of RUN@N"
        assert "(gold: " in line and "f1 " in line
