"""`kbgym audit` on a run, on a store without its world, on a world of plain sentences, and on what is broken."""

import json

import pytest
from click.testing import CliRunner
from family import documents, family, store_with
from store_fixtures import Live

from kbgym.cli.main import VERBS, app
from kbgym.errors import BadInput
from kbgym.gym.actions import Add, Delete, LinkMany
from kbgym.store import source
from kbgym.trace.backend import save_store
from kbgym.worlds.world import Document, World

KEYS = (
    "coverage genuine stubs materialised precision recall lost_origins duplicates orphans"  # promised to scripts
    " readings resolved other kinds links suspected_links incomplete biggest next"
).split()
LUND = [f"{name} lives in the city of Lund" for name in ("Ada Alm", "Bo Alm", "Kim Fox", "Ada Bok")]


def audit(*arguments: object) -> dict:
    result = CliRunner().invoke(app, ["audit", *map(str, arguments), "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def screen(*arguments: object) -> str:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)], catch_exceptions=False).output


@pytest.fixture
def run(tmp_path):
    """One right index, one stub, one recited answer, a job filed under a city, a lost fact."""
    world = family()
    ids = documents(world)
    live = Live(tmp_path / "run", [source(document.id, document.text) for document in world.documents])
    world.save(live.path / "world")
    live.act(Add("Residents of Lund"))
    live.act(LinkMany("n1", tuple(ids[text] for text in LUND)))
    live.act(Add("Friends of Cy Alm"))
    live.act(Add("Friends of Ada Alm: Ian Ost, Kim Fox"))
    live.commit()
    live.act(Add("People who live in Ystad"))
    live.act(LinkMany("n4", (ids["Fay Alm lives in the city of Ystad"], ids["Fay Alm's job is judge"])))
    live.act(Delete(ids["Ada Bok's job is florist"]))
    live.commit()
    live.close()
    return live.path


def test_a_run_is_scored_against_its_own_world(run):
    result = audit(run)
    assert [key for key in KEYS if key not in result] == []
    assert [result[key] for key in ("genuine", "stubs", "materialised", "other")] == [2, 1, 1, 0]
    assert (result["lost_origins"], result["orphans"], result["duplicates"]) == (1, 2, 0)
    assert result["lost"] == [documents(family())["Ada Bok's job is florist"]]
    assert (result["precision"], result["recall"]) == (pytest.approx(5 / 6), pytest.approx(5 / 6))
    assert [row["group"] for row in result["kinds"]] == ["city", "all"]
    assert result["coverage"] == pytest.approx(6 / len(family().documents))
    assert result["readings"]["confirmed"] == pytest.approx(5 / len(family().documents))
    assert [suspect["target_text"] for suspect in result["suspected_links"]] == ["Fay Alm's job is judge."]
    assert [index["missing"] for index in result["incomplete"]] == [["Gus Alm"]]


def test_an_earlier_iteration(run):
    result = audit(f"{run}@1")
    assert (result["lost_origins"], result["precision"], result["recall"]) == (0, 1.0, 1.0)


def test_the_screen_fits_and_names_what_is_wrong(run):
    text = screen(run)
    assert len(text.splitlines()) <= 40
    for part in ("1 stub", "1 lost origins", "wrong links: 1", "Fay Alm's job is judge.", "misses 1 of 2: Gus Alm"):
        assert part in text


def test_every_incomplete_index_is_named_with_what_it_misses(tmp_path):
    world = family()
    ids = documents(world)
    live = Live(tmp_path / "run", [source(document.id, document.text) for document in world.documents])
    world.save(live.path / "world")
    people = ("Ada Alm", "Bo Alm", "Cy Alm", "Dot Alm", "Fay Alm")
    for number, name in enumerate(people, 1):
        live.act(Add(name))
        own = next(id for text, id in ids.items() if text.startswith(f"{name} lives"))
        live.act(LinkMany(f"n{number}", (own,)))
    live.commit()
    live.close()
    text = screen(live.path)
    assert f"incomplete indexes: {len(people)}" in text
    lines = [line for line in text.splitlines() if " misses " in line and " of " in line]
    assert [name for name in people if any(f'"{name}" misses' in line for line in lines)] == list(people)
    assert any("Cy Alm is married to Eve Ek" in line for line in lines), "what is missing, not what is there"
    assert any(line.startswith("- ") and "audit" in line and "--json" in line for line in text.splitlines())


def test_only_commands_that_exist_are_proposed(run):
    for text in (screen(run), "\n".join(audit(run)["next"])):
        proposed = [line.partition("kbgym ")[2].split()[0] for line in text.splitlines() if ": kbgym " in line]
        assert len(proposed) >= 4 and set(proposed) <= set(VERBS)
        assert f"blame {run} {documents(family())['Ada Bok' + chr(39) + 's job is florist']}" in text


def test_a_proposed_command_runs(run):
    command = next(line for line in audit(run)["next"] if "lost" in line).partition(": kbgym ")[2]
    assert CliRunner().invoke(app, command.split(), catch_exceptions=False).exit_code == 0


def test_a_store_needs_its_world_to_be_scored(tmp_path):
    world = family()
    world.save(tmp_path / "world")
    save_store(store_with(world, a=("Residents of Lund", LUND[:2]), b=("Lund residents", [])), tmp_path / "store")
    without = audit(tmp_path / "store")
    assert (without["resolved"], without["precision"], without["kinds"]) == (False, None, [])
    assert "No facts to score the indexes against" in screen(tmp_path / "store")
    with_world = audit(tmp_path / "store", "--world", tmp_path / "world")
    assert (with_world["precision"], with_world["recall"]) == (1.0, 0.5)
    assert (with_world["duplicates"], with_world["same_keys"]) == (1, [["a", "b"]])


def test_a_world_that_is_not_the_stores_is_refused(tmp_path):
    World((Document("x1", "Water is wet."),)).save(tmp_path / "other")
    save_store(store_with(family()), tmp_path / "store")
    with pytest.raises(BadInput, match="is not the world of"):
        audit(tmp_path / "store", "--world", tmp_path / "other")


def test_plain_sentences_without_facts(tmp_path):
    sentences = (
        "The turbine has three blades.",
        "Turbine oil is changed yearly.",
        "A turbine needs wind.",
        "Cats purr.",
    )
    live = Live(tmp_path / "store", [source(f"d{n}", text) for n, text in enumerate(sentences)])
    live.act(Add("All about turbines"))
    live.act(LinkMany("n1", ("d0", "d1", "d2", "d3")))
    live.commit()
    live.close()
    result = audit(live.path)
    assert [suspect["target"] for suspect in result["suspected_links"]] == ["d3"]
    assert (result["genuine"], result["coverage"], result["recall"]) == (1, 1.0, None)
    assert "suspected links: 1" in screen(live.path)


def test_a_flat_store_is_told_to_train(tmp_path):
    family().save(tmp_path / "world")
    result = audit(tmp_path / "world")
    assert (result["coverage"], result["genuine"], result["precision"]) == (0, 0, None)
    assert "no index yet" in result["next"][0]


def test_a_healthy_store_has_nothing_to_mend(tmp_path):
    world = World((Document("d1", "The turbine has three blades."),))
    live = Live(tmp_path / "store", [source("d1", world.documents[0].text)])
    live.act(Add("Turbine"))
    live.act(LinkMany("n1", ("d1",)))
    live.commit()
    live.close()
    assert audit(live.path)["next"] == []
    assert "Nothing: all is in order." in screen(live.path)
