"""`kbgym prove`: from a world to a verdict in one command, interrupted or not, and paid for once."""

from __future__ import annotations

import json

import pytest
from crash_recovery import killed
from experiments import contents
from fault_server import FaultServer

import kbgym as package
from kbgym.agents.llm.cassette import Cassette
from kbgym.training.exam import ResultWriter
from kbgym.training.trainer import Trainer
from kbgym.worlds.people import generate
from kbgym.worlds.splits import Sizes

SMALL = ["--set", "embedder=hash", "--questions", "12", "--epochs", "1", "--n", "10"]
MODEL = "llm:local/tiny"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds") / "w"
    generate(60, 0, Sizes(train=20, test_in=12, test_out=4, eval_in=2, eval_out=2)).save(folder)
    return folder


def test_a_verdict_with_everything_it_rests_on(world, tmp_path, kbgym):
    out = tmp_path / "run"
    code, text, _ = kbgym("prove", world, "--out", out, *SMALL, "--json")
    found = json.loads(text)
    keys = "verdict accuracy n rho rho_low rho_high f1_flat f1_trained evidence_flat evidence_trained break_even cost"
    more = "groups headroom tokens_flat tokens_trained first_page_flat first_page_trained f1_within_flat right answers"
    assert code == 0 and not {*keys.split(), *more.split()} - set(found)
    assert found["accuracy"] in ("not lower", "undecided", "lower") and sum(found["right"].values()) == found["n"]
    assert found["verdict"] in ("helps", "no difference shown", "hurts") and found["n"] == 10
    assert found["trained"]["n"] == 10 and found["cost"]["training_actions"] > 0 and found["cost"]["dollars"] == 0
    assert json.loads((out / "verdict.json").read_text()) == found
    rows = {}
    for store in ("flat", "trained"):
        lines = (out / "exams" / f"{store}-test_in.jsonl").read_text().splitlines()
        rows[store] = [json.loads(line) for line in lines]
    actions = [row["actions"] for row in rows["flat"]]
    assert found["headroom"] == pytest.approx(1 - sum(min(2, one) for one in actions) / sum(actions), abs=1e-4)
    assert found["f1_within_flat"][3] == pytest.approx(
        sum(row["f1"] for row in rows["flat"] if row["actions"] <= 4) / 10
    )
    assert found["tokens_flat"] == round(sum(row["characters"] for row in rows["flat"]) / 40, 1)
    seen = [row["evidence"] for row in rows["flat"] if row["evidence"].get("supports")]
    first = sum(one.get("seen", []).count(1) / one["supports"] for one in seen) / len(seen)
    assert found["first_page_flat"] == pytest.approx(first, abs=1e-6) and found["evidence_n"] == len(seen)
    assert [one["id"] for one in found["answers"]] == [row["id"] for row in rows["flat"]]
    ratio = sum(row["actions"] for row in rows["trained"]) / sum(row["actions"] for row in rows["flat"])
    assert found["rho"] == pytest.approx(ratio, abs=1e-4)
    opened = {
        shot["result"]["id"]
        for file in ("trained-test_in", "trained-trained")
        for line in (out / "exams" / f"{file}.jsonl").read_text().splitlines()
        for shot in json.loads(line)["shots"]
        if shot["result"]["result"] == "opened"
    }
    assert {one["id"] for one in found["indexes"] if one["questions"]} <= opened
    code, said, _ = kbgym("prove", world, "--out", out, *SMALL)
    assert code == 0 and said.startswith("Verdict: ") and "rho" not in said and "ρ" not in said
    assert "questions training never saw" in " ".join(said.split()) and "\nNext: " in said


@pytest.mark.parametrize(
    ("where", "after"), [(ResultWriter, 3), (ResultWriter, 15), (Trainer, 0), (Trainer, 7), (ResultWriter, 25)]
)
def test_interrupted_it_goes_on_and_ends_in_the_same_bytes(world, tmp_path, kbgym, monkeypatch, where, after):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert kbgym("prove", world, "--out", whole, *SMALL, "--quiet")[0] == 0
    method = "add" if where is ResultWriter else "begin"
    real, calls = getattr(where, method), []

    def stops(self, *given):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return real(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(where, method, stops)
        code, _, error = kbgym("prove", world, "--out", cut, *SMALL)
    assert code == 130 and "run the same command again" in error and not (cut / "verdict.json").exists()
    calls.clear()
    monkeypatch.setattr(ResultWriter, "add", lambda self, row: (calls.append(row.id), real_add(self, row)))
    assert kbgym("prove", world, "--out", cut, *SMALL, "--quiet")[0] == 0
    if where is ResultWriter:
        assert len(calls) == 40 - after, "no question is asked twice"
    ours, theirs = contents(cut), contents(whole)
    del ours["verdict.json"], theirs["verdict.json"]
    assert ours == theirs
    verdicts = [json.loads((folder / "verdict.json").read_text()) for folder in (cut, whole)]
    assert [one.pop("run") for one in verdicts] == [str(cut), str(whole)] and verdicts[0] == verdicts[1]


real_add = ResultWriter.add


def test_a_run_that_was_trained_before_is_proved_without_training_again(world, tmp_path, kbgym, monkeypatch):
    out = tmp_path / "run"
    train = ["train", "--world", world, "--out", out, "--set", "embedder=hash", "--questions", "12", "--epochs", "1"]
    assert kbgym(*train, "--quiet")[0] == 0
    monkeypatch.setattr(Trainer, "begin", lambda *_: pytest.fail("trained again"))
    assert kbgym("prove", world, "--out", out, "--quiet")[0] == 0
    code, _, error = kbgym("prove", world, "--out", out, "--epochs", "3")
    assert code == 2 and "was started with epochs 1, not 3" in error


def test_bad_input_is_one_sentence_and_nothing_is_written(world, tmp_path, kbgym):
    for arguments, said in [
        (["--set", "nonsense"], "no questions in the split 'nonsense'"),
        (["--set", "train"], "training would see"),
        (["--agent", "nobody"], "there is no agent 'nobody'"),
    ]:
        code, _, error = kbgym("prove", world, "--out", tmp_path / "run", *arguments)
        assert code == 2 and said in error and not (tmp_path / "run").exists()


def test_an_own_corpus_from_its_files_to_a_verdict(tmp_path, kbgym):
    notes, out = "examples/harbour/notes", tmp_path / "run"
    asked = ("--questions", "examples/harbour/questions.csv")
    assert kbgym("import", "corpus", notes, *asked, "--out", tmp_path / "world", "--quiet")[0] == 0
    code, said, _ = kbgym("prove", tmp_path / "world", "--out", out, "--set", "embedder=hash")
    assert code == 0 and said.startswith("Verdict: ")
    assert kbgym("report", out, "--quiet")[0] == 0


def test_public_text_is_also_asked_without_a_store_and_only_once(tmp_path, kbgym):
    entries = [
        {
            "_id": f"h{number}",
            "question": f"Who founded the yard that built the boat{number}?",
            "answer": f"Founder{number}",
            "type": "bridge",
            "supporting_facts": [[f"Boat{number}", 0], [f"Yard {number}", 0]],
            "context": [
                [f"Boat{number}", [f"The boat{number} was built by Yard {number}."]],
                [f"Yard {number}", [f"Yard {number} was founded by Founder{number}."]],
            ],
        }
        for number in range(20)
    ]
    (tmp_path / "hotpot.json").write_text(json.dumps(entries))
    assert kbgym("import", "hotpotqa", tmp_path / "hotpot.json", "--out", tmp_path / "world", "--quiet")[0] == 0
    code, text, error = kbgym(
        "prove", tmp_path / "world", "--out", tmp_path / "run", "--set", "embedder=hash", "--json"
    )
    assert code == 0, error
    assert json.loads(text)["nostore_f1"] is not None
    assert len(list((tmp_path / "run" / "exams").glob("*.nostore.jsonl"))) == 1
    assert "This text is public" in kbgym("prove", tmp_path / "world", "--out", tmp_path / "run")[1]
    assert kbgym("report", tmp_path / "run", "--quiet")[0] == 0


@pytest.mark.slow
def test_one_forecast_one_confirmation_one_cap_for_everything(world, tmp_path, kbgym):
    out = tmp_path / "run"
    with FaultServer() as server:
        base = ["prove", world, "--out", out, "--set", "embedder=hash", "--questions", "4", "--epochs", "1", "--n", "3"]
        base += ["--agent", MODEL, "--set", f"base_url={server.url}"]
        code, _, error = kbgym(*base)
        assert code == 2 and "use --yes" in error and server.answered == 0
        assert error.count("passes, about") == 1 and "20 passes" in error, "4 forward, 4 backward, 12 exam passes"
        caps, code = [], 1
        for cap in range(60_000, 2_000_000, 150_000):
            code, _, error = kbgym(*base, "--yes", "--set", f"max_tokens={cap}")
            if code == 0:
                break
            assert code == 1 and f"max_tokens {cap} is reached" in error
            caps.append(cap)
        assert code == 0 and caps
        found = json.loads((out / "verdict.json").read_text())
        spent = found["cost"]["training_tokens"] + found["cost"]["exam_tokens"]
        assert caps[-1] <= spent, "the cap is on everything, not on each step"
        kept = [out / "cassette.jsonl", *(out / "exams").glob("*.cassette.jsonl")]
        assert server.answered == sum(len(Cassette(file, record=False)) for file in kept), "nothing was paid twice"
        code, _, error = kbgym(*base)
        assert code == 0 and "passes" not in error, "when all is there, nothing is asked and nothing spent"
        assert len(package.open(out).exams()) == 4, "what models said lies beside the rows and is no exam"


@pytest.mark.slow
def test_killed_ten_times_it_ends_in_the_same_bytes(world, tmp_path):
    killed("prove", tmp_path, 10, world)


def test_who_remembers_earlier_questions_proves_nothing(kbgym, tmp_path):
    generate(40, 0).save(tmp_path / "world")
    for words in (
        ["prove", tmp_path / "world", "--out", tmp_path / "run", "--set", "reader=hand"],
        ["experiment", "run", "paper", "--out", tmp_path / "exp", "--set", "readers=reference,hand"],
    ):
        code, _, error = kbgym(*words)
        assert code == 2 and "remembers earlier questions" in error
    assert not (tmp_path / "run").exists() and not (tmp_path / "exp").exists()
