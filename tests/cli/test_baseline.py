"""`kbgym baseline` as a user meets it."""

import json

import pytest
from fault_server import FaultServer
from writers import summarising

from kbgym.api import open as open_artefact
from kbgym.cli.main import run
from kbgym.trace.folder import open_folder
from kbgym.worlds import people
from kbgym.worlds.world import Document, World

KEYS = {"arm", "documents", "links", "coverage", "authored", "engine", "notes", "seconds", "seed", "tokens"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    out = tmp_path_factory.mktemp("worlds") / "w"
    people.generate(60, 0, people.NO_QUESTIONS).save(out)
    return out


def kbgym(capfdbinary, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        run(list(arguments))
    printed = capfdbinary.readouterr()
    return int(stopped.value.code or 0), printed.out.decode(), printed.err.decode()


@pytest.mark.parametrize("arm", ["flat", "graphrag", "hipporag", "raptor", "lightrag", "oracle", "nostore"])
def test_it_writes_a_store_and_counts_it(capfdbinary, tmp_path, world, arm):
    arguments = (
        "baseline",
        arm,
        "--world",
        str(world),
        "--out",
        str(tmp_path / arm),
        "--set",
        "embedder=hash",
        "--json",
    )
    code, printed, _ = kbgym(capfdbinary, *arguments)
    result = json.loads(printed)
    assert code == 0 and result.keys() == KEYS and result["arm"] == arm
    store = open_folder(tmp_path / arm).store()
    assert (result["documents"], result["links"]) == (len(store), store.links)
    assert result["coverage"] == (0.0 if arm in ("flat", "nostore") else 1.0)
    assert json.loads((tmp_path / arm / "arm.json").read_text())["arm"] == arm
    before = (tmp_path / arm / "records.jsonl").read_bytes()
    assert kbgym(capfdbinary, *arguments)[0] == 0
    assert (tmp_path / arm / "records.jsonl").read_bytes() == before


def test_a_store_of_pages_says_how_it_reads(capfdbinary, tmp_path):
    texts = ("Kestrel: It was built by Holm Yard.", "Holm Yard: It is old.", "Holm Yard: It is closed.")
    World(tuple(Document(f"d{n}", text, about=(text.partition(": ")[0],)) for n, text in enumerate(texts))).save(
        tmp_path / "w"
    )
    arguments = ("baseline", "pages", "--world", str(tmp_path / "w"), "--out", str(tmp_path / "s"), "--json")
    code, printed, _ = kbgym(capfdbinary, *arguments)
    result = json.loads(printed)
    assert code == 0 and result["links"] == 3 and result["notes"]["pages_named"] == 1
    with open_artefact(tmp_path / "s") as opened, open_artefact(tmp_path / "s", observations="paper") as plain:
        assert (opened.settings.observations, plain.settings.observations) == ("rich", "paper")


def test_people_read_a_sentence(capfdbinary, tmp_path, world):
    code, printed, _ = kbgym(capfdbinary, "baseline", "flat", "--world", str(world), "--out", str(tmp_path / "s"))
    assert code == 0 and "B1 flat" in printed and "0 links" in printed


def test_bad_input_is_one_sentence(capfdbinary, tmp_path, world):
    code, _, error = kbgym(capfdbinary, "baseline", "nosuch", "--world", str(world), "--out", str(tmp_path / "s"))
    assert code == 2 and "no arm 'nosuch'" in error and "hipporag" in error
    code, _, error = kbgym(capfdbinary, "baseline", "flat", "--world", str(tmp_path), "--out", str(tmp_path / "s"))
    assert code == 2 and "not a world" in error
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "other").write_text("kept")
    code, _, error = kbgym(capfdbinary, "baseline", "flat", "--world", str(world), "--out", str(tmp_path / "s"))
    assert code == 2 and "exists with other content" in error
    assert (tmp_path / "s" / "other").read_text() == "kept"


def test_help_lists_the_arms(capfdbinary):
    code, printed, _ = kbgym(capfdbinary, "baseline", "--help")
    assert code == 0 and "hipporag" in printed and "nostore" in printed


def test_a_model_writes_graphrags_summaries_once_it_was_forecast_and_confirmed(capfdbinary, tmp_path, world):
    build = ("baseline", "graphrag", "--world", str(world), "--json")
    with FaultServer(summarising) as server:
        asked = (*build, "--out", str(tmp_path / "b2"), "--agent", "llm:local/tiny", "--set", f"base_url={server.url}")
        code, _, error = kbgym(capfdbinary, *asked)
        assert code == 2 and "use --yes" in error and "requests, about" in error and not server.bodies
        code, printed, error = kbgym(capfdbinary, *asked, "--yes")
        assert code == 0, error
        result, paid = json.loads(printed), len(server.bodies)
    written = [one.text for one in open_folder(tmp_path / "b2").store() if one.flag == "authored"]
    by_model = [text for text in written if text.startswith("All about ")]
    assert 0 < len(by_model) == result["notes"]["written"] < len(written) == result["notes"]["communities"]
    assert all(text.startswith("Summary of ") for text in written if text not in by_model), "else a rule does it"
    assert result["tokens"] > 0 and json.loads((tmp_path / "b2" / "arm.json").read_text())["agent"] == "llm:local/tiny"
    cassette = f"cassette:{tmp_path}/b2.cassette.jsonl"
    assert kbgym(capfdbinary, *build, "--out", str(tmp_path / "again"), "--agent", cassette)[0] == 0
    assert (tmp_path / "again" / "records.jsonl").read_bytes() == (tmp_path / "b2" / "records.jsonl").read_bytes()
    assert len(server.bodies) == paid
    code, _, error = kbgym(
        capfdbinary, "baseline", "flat", *build[2:], "--out", str(tmp_path / "f"), "--agent", cassette
    )
    assert code == 2 and "--agent is for graphrag" in error
