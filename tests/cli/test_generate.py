"""`kbgym generate` and `kbgym import` as a user meets them: output, exit codes, nothing half-written."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kbgym.cli.main import run
from kbgym.worlds.people import NO_QUESTIONS, generate, pool
from kbgym.worlds.world import World

SMALL = [
    "--people",
    "60",
    "--set",
    "train=20",
    "--set",
    "test_in=10",
    "--set",
    "test_out=10",
    "--set",
    "eval_in=4",
    "--set",
    "eval_out=4",
]


def kbgym(capfdbinary, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        run(list(arguments))
    printed = capfdbinary.readouterr()
    return int(stopped.value.code or 0), printed.out.decode(), printed.err.decode()


def test_it_writes_a_world_and_says_so(capfdbinary, tmp_path):
    out = tmp_path / "made" / "world"
    code, printed, _ = kbgym(capfdbinary, "generate", *SMALL, "--out", str(out))
    assert code == 0
    world = World.load(out)
    assert f"{len(world.documents)} documents" in printed and "train 20" in printed and world.hash in printed
    assert sorted(path.name for path in out.iterdir()) == ["documents.jsonl", "questions.jsonl", "world.json"]
    assert [path.name for path in out.parent.iterdir()] == ["world"]


def test_the_files_have_the_promised_fields(capfdbinary, tmp_path):
    kbgym(capfdbinary, "generate", *SMALL, "--out", str(tmp_path / "w"))
    world = json.loads((tmp_path / "w" / "world.json").read_text())
    assert world["kind"] == "people" and world["seed"] == 0
    fields = "id name gender job hobby city born spouse parents children friends distractor"
    assert all(person.keys() == set(fields.split()) for person in world["people"])
    lines = (tmp_path / "w" / "documents.jsonl").read_text().splitlines()
    assert all(json.loads(line).keys() == {"id", "text", "kind", "about"} for line in lines)
    fields = "id split class template text keys golds support unanswerable"
    lines = (tmp_path / "w" / "questions.jsonl").read_text().splitlines()
    assert all(json.loads(line).keys() == set(fields.split()) for line in lines)
    assert all(key.keys() == {"kind", "value"} for line in lines for key in json.loads(line)["keys"])


def test_json_for_scripts_and_twice_is_the_same(capfdbinary, tmp_path):
    arguments = ["generate", *SMALL, "--seed", "4", "--json", "--out", str(tmp_path / "w")]
    code, first, _ = kbgym(capfdbinary, *arguments)
    again = kbgym(capfdbinary, *arguments)
    assert (code, first) == again[:2]
    result = json.loads(first)
    assert result.keys() == {"documents", "questions", "splits", "hash"}
    assert result["splits"] == {"train": 20, "test_in": 10, "test_out": 10, "eval": 8}


def test_a_pool_goes_to_stdout(capfdbinary):
    code, printed, _ = kbgym(capfdbinary, "generate", "--people", "60", "--pool", "job-and-city")
    lines = [json.loads(line) for line in printed.splitlines()]
    assert code == 0
    assert [line["id"] for line in lines] == [q.id for q in pool(generate(60, 0, NO_QUESTIONS), "job-and-city")]
    keys = lines[0]["keys"]
    assert lines[0]["id"] == f"job-and-city:{keys[0]['value']}:{keys[1]['value']}"


def test_a_reader_that_stops_early_is_no_error():
    code = "from kbgym.cli.main import run; run(['generate', '--people', '500', '--pool', 'common-friend'])"
    making = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert making.stdout and making.stderr
    assert making.stdout.readline().startswith(b'{"class":"QC7"')
    making.stdout.close()
    assert making.wait(60) == 0
    assert making.stderr.read() == b""
    making.stderr.close()


BAD = {
    "negative people": (["--people", "-5"], "at least 20 people, not -5"),
    "no people": (["--people", "0"], "at least 20 people"),
    "too many people": (["--people", "1000000"], "at most 150000 people"),
    "words for numbers": (["--people", "many"], "not a valid integer"),
    "a negative split": (["--set", "train=-1"], "train cannot have -1 questions"),
    "a split larger than its pool": (["--people", "60", "--set", "train=9000"], "the pool has only"),
    "an unknown flag": (["--poeple", "500"], "No such option"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_exit_2_and_no_files(name, capfdbinary, tmp_path):
    arguments, says = BAD[name]
    code, printed, error = kbgym(capfdbinary, "generate", *arguments, "--out", str(tmp_path / "w"))
    assert code == 2 and printed == ""
    assert says in error and "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_out_is_needed_and_does_not_go_with_pool(capfdbinary, tmp_path):
    assert kbgym(capfdbinary, "generate")[0] == 2
    assert kbgym(capfdbinary, "generate", "--pool", "job-of", "--out", str(tmp_path / "w"))[0] == 2
    code, _, error = kbgym(capfdbinary, "generate", "--pool", "shoe-size-of")
    assert code == 2 and "no template 'shoe-size-of'" in error


def test_a_folder_with_other_content_is_left_alone(capfdbinary, tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "thesis.txt").write_text("years of work")
    code, _, error = kbgym(capfdbinary, "generate", *SMALL, "--out", str(tmp_path / "w"))
    assert code == 2 and "exists with other content" in error
    assert [path.name for path in tmp_path.rglob("*")] == ["w", "thesis.txt"]
    (tmp_path / "file").write_text("")
    assert kbgym(capfdbinary, "generate", *SMALL, "--out", str(tmp_path / "file"))[0] == 2


def test_importing_has_sources_and_exit_codes(capfdbinary, tmp_path):
    code, printed, _ = kbgym(capfdbinary, "import", "--help")
    assert code == 0 and "paper-universe" in printed
    assert kbgym(capfdbinary, "import", "atlantis")[0] == 2
    sample = Path(__file__).parents[1] / "worlds" / "paper-sample.json"
    out = tmp_path / "paper"
    assert kbgym(capfdbinary, "import", "paper-universe", str(sample), "--out", str(out))[0] == 0
    assert len(World.load(out).questions) == 9
    torn = tmp_path / "torn.json"
    torn.write_bytes(sample.read_bytes()[:500])
    code, _, error = kbgym(capfdbinary, "import", "paper-universe", str(torn), "--out", str(tmp_path / "no"))
    assert code == 2 and "not a whole universe file" in error and len(error.splitlines()) == 1
    assert not (tmp_path / "no").exists()


def test_benchmark_3_is_a_world_of_its_own(capfdbinary, tmp_path):
    code, out, _ = kbgym(capfdbinary, "generate", "--benchmark", "3", "--json", "--out", str(tmp_path / "w"))
    assert code == 0 and json.loads(out)["splits"]["test_in-reworded"] == 104
    assert json.loads((tmp_path / "w" / "world.json").read_text())["kind"] == "people-v3"
    code, out, _ = kbgym(capfdbinary, "generate", "--benchmark", "3", "--pool", "join-job-city")
    assert code == 0 and json.loads(out.splitlines()[0])["class"] == "join"
    assert (
        kbgym(capfdbinary, "generate", "--benchmark", "3", "--set", "hard=true", "--out", str(tmp_path / "h"))[0] == 2
    )


def test_dials_are_settings_of_benchmark_3(capfdbinary, tmp_path):
    dials = ["--set", "passage=8", "--set", "wordings=open", "--set", "round=1"]
    arguments = ["generate", "--benchmark", "3", *dials, "--out", str(tmp_path / "w")]
    assert kbgym(capfdbinary, *arguments)[0] == 0
    facts = json.loads((tmp_path / "w" / "world.json").read_text())
    assert facts["dials"]["passage"] == 8 and facts["dials"]["wordings"] == "open" and facts["round"] == 1
    assert "test_in-update1" in World.load(tmp_path / "w").splits
    for bad in (["--set", "depth=9", "--benchmark", "3"], ["--set", "depth=2"]):
        assert kbgym(capfdbinary, "generate", *bad, "--out", str(tmp_path / "x"))[0] == 2
