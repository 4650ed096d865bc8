"""The viewer's routes: they give what the rest of kbgym gives, refuse what is not here, and change nothing."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from experiments import contents, small_experiment
from family import family, store_with
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from viewing import plain_store

from kbgym.analysis.health import health
from kbgym.analysis.index_use import account
from kbgym.analysis.results import open_results
from kbgym.analysis.tables import arms
from kbgym.api.factory import embedder_named
from kbgym.canonical import read_lines
from kbgym.errors import BadInput
from kbgym.gym.actions import Correct
from kbgym.gym.environment import apply
from kbgym.gym.observations import render
from kbgym.gym.tools import PAGE_SIZE
from kbgym.search.factory import engine_for
from kbgym.store import Store
from kbgym.store.record import source
from kbgym.trace.backend import save_store
from kbgym.trace.events import Acted
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import Row
from kbgym.viewer.app import HEADERS, PAGES, STATIC, guarded, make_viewer
from kbgym.viewer.places import ViewedPlaces


def client_of(*places: Path) -> TestClient:
    return TestClient(
        guarded(make_viewer(ViewedPlaces(places))), base_url="http://127.0.0.1", raise_server_exceptions=True
    )


@pytest.fixture(scope="module")
def client(run: Path) -> TestClient:
    return client_of(run)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_experiment(tmp_path_factory.mktemp("viewer") / "exp")


def get(client: TestClient, where: str):
    answer = client.get(f"/api/{where}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_no_word_of_the_page_is_about_one_kind_of_world():
    words = re.compile(r"\b(jobs?|people|persons?|city|cities|shelf|desk)\b", re.IGNORECASE)
    folder = Path(str(STATIC.directory))
    own = {file.name: file.read_text() for kind in ("js", "html") for file in folder.glob(f"*.{kind}")}
    assert len(own) > 10 and {name: found for name, text in own.items() if (found := words.findall(text))} == {}


def test_the_index_audit_has_what_each_gave_the_exams(client: TestClient, run: Path):
    found = get(client, "audit")
    uses = {one.id: one for one in account(run, StoreFolder(run).store()).indexes}
    assert found["exams"]["n"] == 16 and any(one["use"]["questions"] for one in found["indexes"])
    for one in found["indexes"]:
        assert (one["use"]["saved"], one["use"]["f1"]) == (uses[one["id"]].saved, uses[one["id"]].f1)
    assert any("kbgym store prune" in line for line in found["advice"])
    flat = get(client, "audit?arm=flat")
    assert flat["exams"] is None and flat["indexes"] == []


# -- what it shows is what there is -----------------------------------------------------------------------------------


def test_search_ranks_as_agents_see_it(client, run):
    store = StoreFolder(run).store()
    engine = engine_for(store, embedder_named("hash"))
    found = get(client, "search?q=lives+in+the+city")
    assert [hit["id"] for hit in found["hits"]] == [id for id, _ in engine.search("lives in the city", 0, 20)]
    assert found["page"] == PAGE_SIZE
    assert [hit["text"] for hit in found["hits"]] == [store[hit["id"]].text for hit in found["hits"]]


def test_search_for_an_id_names_its_document(client, run):
    record = next(iter(StoreFolder(run).store()))
    assert get(client, f"search?q={record.id}")["named"]["text"] == record.text


def test_corrections_are_listed_and_superseded_documents_say_so(tmp_path):
    store = Store([source("d1", "Ada Alm is a baker."), source("d2", "Bo Berg is a smith.")])
    apply(store, Correct("Ada Alm is a smith, says ada.", ("d1",)))
    save_store(store, str(tmp_path / "taught"))
    client = client_of(tmp_path / "taught")
    (found,) = get(client, "corrections")
    assert (found["kind"], [one["id"] for one in found["supersedes"]]) == ("correction", ["d1"])
    assert get(client, "document?id=d1")["superseded_by"] == [found["id"]]
    assert "superseded_by" not in get(client, "document?id=d2")


def test_a_document_has_its_links_and_who_made_them(client, run):
    folder = StoreFolder(run)
    store = folder.store()
    index = max((record for record in store if record.flag == "authored"), key=lambda record: len(record.links))
    found = get(client, f"document?id={index.id}")
    assert [link["id"] for link in found["out"]] == list(index.links)
    assert found["kind"] == "index" and found["history"][0]["kind"] == "written"
    written = found["history"][0]["by"]
    acted = [e for e in folder.events if isinstance(e, Acted) and e.phase == "backward"]
    assert any((e.iteration, e.step) == (written["iteration"], written["step"]) for e in acted)
    assert all(link["by"]["iteration"] >= written["iteration"] for link in found["out"])
    below = get(client, f"document?id={index.links[0]}")
    assert index.id in [link["id"] for link in below["in"]]


def test_a_store_of_the_past_is_searched_and_read_as_it_was(client, run):
    folder = StoreFolder(run)
    authored = [record.id for record in folder.store() if record.flag == "authored"]
    assert get(client, "search?arm=trained-paper&at=0&q=lives")["hits"]
    answer = client.get(f"/api/document?at=0&id={authored[0]}")
    assert answer.status_code == 404 or not answer.json()["alive"]


def test_the_audit_is_the_audit(client, run):
    place = open_results(run).seeds[0].trained["trained-paper"]
    found = get(client, "audit")
    expected = health(place.store, place.run.world, tuple(o for r in place.place.initial for o in r.origins))
    assert [row["id"] for row in found["indexes"]] == [index.id for index in expected.audit.indexes]
    assert [row["wrong"] for row in found["indexes"] if row["precision"] is not None] == [
        len(index.wrong) for index in expected.audit.indexes if index.scored
    ]
    assert found["suspects_total"] == len(expected.suspects)


def test_intervals_are_the_reports(client, run):
    results = open_results(run)
    found = get(client, "gradient")
    cells = {cell.id: cell for cell in arms.gradient(results).cells}
    for group in results.groups:
        shown = found["arms"][0]["groups"][group]
        cell = cells[f"gradient/trained-paper/{group}/rho"]
        assert (shown["rho"]["value"], shown["rho"]["low"], shown["rho"]["high"]) == (cell.value, cell.low, cell.high)
    assert found["table"]["sentence"] == arms.gradient(results).sentence


def test_a_reference_result_is_never_shown_as_a_models(client):
    about = get(client, "about")
    assert about["reference"] and "no language model" in about["agent"]


def test_an_exam_reads_as_the_agent_read_it(client, run):
    rows = list(read_lines(run / "exams" / "trained-trained.jsonl", Row))
    store = StoreFolder(run).store()
    row = max(rows, key=lambda one: one.actions)
    found = get(client, f"question?set=trained&id={quote(row.id)}&arms=flat,trained-paper")
    side = found["sides"][1]
    assert (side["answer"], side["actions"], side["outcome"]) == (row.answer, row.actions, row.outcome)
    for shot, step in zip(row.shots, side["steps"], strict=True):
        shown = [*step["result"].get("head", ()), *step["result"]["lines"]]
        said = render(shot.result, lambda id: store[id].text)
        assert all(f"[{line['id']}] {line['text']}" in said for line in shown)
        assert len(shown) == said.count("[")
    assert side["steps"][-1]["evidence"][1] == len(found["support"])


def test_steps_both_took_are_marked_on_both_sides(client, run):
    row = next(read_lines(run / "exams" / "trained-trained.jsonl", Row))
    same = get(client, f"question?set=trained&id={quote(row.id)}&arms=flat,trained-paper")["sides"]
    assert sum(step.get("shared", False) for step in same[0]["steps"]) == sum(
        step.get("shared", False) for step in same[1]["steps"]
    )


def test_a_lesson_shows_both_passes_and_what_became_of_the_edits(client, run):
    lessons = get(client, "lessons")["rows"]
    assert len(lessons) == 24 and all(row["class"] for row in lessons)
    edited = next(row for row in lessons if row["edits"])
    found = get(client, f"lesson?iteration={edited['iteration']}")
    assert [side["phase"] for side in found["sides"]] == ["forward", "backward"]
    assert found["golds"] and found["f1"] == edited["f1"]
    effects = [step["effect"] for step in found["sides"][1]["steps"] if "effect" in step]
    assert effects and all(one["kind"] in ("index", "stub", "source", "edited", "gone") for one in effects)
    assert len(found["sides"][0]["steps"]) == edited["steps"]


def test_compare_counts_what_training_added(client, run):
    before, after = StoreFolder(run).store(0), StoreFolder(run).store()
    found = get(client, "compare?left=flat&right=trained-paper")
    assert found["counts"]["added"] == len(after) - len(before)
    assert found["counts"]["links_added"] == after.links
    turned = get(client, "compare?left=trained-paper&right=flat")
    assert turned["counts"]["removed"] == found["counts"]["added"]
    questions = get(client, "compare-questions?left=flat&right=trained-paper")
    results = open_results(run)
    for group in questions["groups"][:-1]:
        pairs = results.pairs("trained-paper", group["set"])
        assert group["rho"]["value"] == pytest.approx(arms.ratio_of(results, pairs).value)
    assert len(questions["rows"]) == sum(group["n"] for group in questions["groups"][:-1])


@pytest.mark.slow
def test_an_experiment_has_every_seed_and_arm(experiment):
    client = client_of(experiment)
    about = get(client, "about?run=exp")
    assert about["seeds"] == [0, 1]
    assert {"trained-paper", "trained-class", "flat", "hipporag", "nostore"} <= {one["arm"] for one in about["arms"]}
    listed = get(client, "questions?run=exp&seed=1")
    row = next(row for row in listed["rows"] if {"hipporag", "trained-class"} <= set(row["by"]))
    sides = get(client, f"question?seed=1&set={row['set']}&id={quote(row['id'])}&arms=hipporag,trained-class")["sides"]
    assert [side["arm"] for side in sides] == ["hipporag", "trained-class"]
    assert not any("no longer" in line["text"] for s in sides for t in s["steps"] for line in t["result"]["lines"])
    assert get(client, "learning?seed=1")["trainings"][0]["exams"]
    assert get(client, "compare?left=flat&right=hipporag&seed=1")["counts"]["relinked"] > 0


def test_tables_come_as_csv(client, run):
    answer = client.get("/api/table.csv?name=gradient")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert len({len(row) for row in rows}) == 1 and len(rows) > 5


def test_several_places_of_one_name_are_kept_apart(run, tmp_path):
    store = plain_store(tmp_path / "small")
    client = client_of(run, store)
    assert [place["name"] for place in get(client, "places")] == ["small", "small-2"]
    assert get(client, "about?run=small-2")["kind"] == "store"
    assert get(client, "summary?run=small-2")["ledger"]["links"] == 0


def test_a_run_without_exams_is_shown_too(run, tmp_path):
    bare = tmp_path / "bare"
    for name, data in contents(run).items():
        if not name.startswith(("exams", "probe")):
            (bare / name).parent.mkdir(parents=True, exist_ok=True)
            (bare / name).write_bytes(data)
    client = client_of(bare)
    assert not get(client, "about")["examined"]
    assert get(client, "learning")["trainings"][0]["growth"][-1][2] == StoreFolder(bare).store().links
    assert get(client, "questions")["rows"] == []
    assert "exams" in client.get("/api/gradient").json()["error"]


def test_stubs_and_wrong_links_are_marked(tmp_path):
    world = family()
    wrong = "Eve Ek's job is miller"
    store = store_with(
        world,
        lund=("People who live in the city of Lund", ["Ada Alm lives in the city of Lund", wrong]),
        empty=("People who live in the city of Oslo", []),
    )
    world.save(tmp_path / "world")
    save_store(store, tmp_path / "family")
    client = TestClient(
        make_viewer(ViewedPlaces([tmp_path / "family"], tmp_path / "world")), base_url="http://127.0.0.1"
    )
    found = get(client, "document?id=lund")
    assert [link.get("suspect") for link in found["out"]] == [None, "wrong"]
    assert get(client, "document?id=empty")["kind"] == "stub"
    assert [(row["index"], row["target"]) for row in get(client, "audit")["suspects"]] == [
        ("lund", found["out"][1]["id"])
    ]
    assert {row["id"]: row["shape"] for row in get(client, "audit")["indexes"]} == {"lund": "genuine", "empty": "stub"}


def test_it_can_be_mounted_below_a_path(run):
    client = TestClient(
        Starlette(routes=[Mount("/view", make_viewer(ViewedPlaces([run])))]), base_url="http://127.0.0.1"
    )
    assert client.get("/view/").text.count('"assets/') == client.get("/view/").text.count("assets/")
    assert client.get("/view/api/places").json()[0]["name"] == "small"
    assert client.get("/view/assets/app.js").status_code == 200
    assert client.get("/view/map").status_code == 200
    assert client.post("/view/api/places").status_code == 405


def test_what_grew_is_shown_anew(run, tmp_path, monkeypatch):
    monkeypatch.setattr("kbgym.viewer.places.LOOK_SECONDS", 0.0)
    growing = tmp_path / "growing"
    shutil.copytree(run, growing)
    client = client_of(growing)
    before = get(client, "lessons")["rows"]
    StoreFolder(growing).rollback(0, "for the test")
    assert len(get(client, "lessons")["rows"]) == len(before) + 1
    assert get(client, "summary")["ledger"]["links"] == 0


def test_the_command_serves_until_it_is_interrupted(run):
    command = [sys.executable, "-c", "from kbgym.cli.main import run; run()", "view", "--json", str(run)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    url = json.loads(process.stdout.readline())["url"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
    assert httpx.get(f"{url}api/places").json()[0]["kind"] == "run"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (0, 130) and b"Traceback" not in said


# -- reading only, and nothing else -----------------------------------------------------------------------------------

ROUTES = (
    *(f"/{page}" for page in PAGES),
    "/assets/app.js",
    "/api/about",
    "/api/gradient",
    "/api/learning",
    "/api/table?name=retention:trained-paper",
    "/api/table?name=spend",
    "/api/summary",
    "/api/search?q=lund",
    "/api/document?id=n1",
    "/api/audit",
    "/api/questions",
    "/api/lessons",
    "/api/lesson?iteration=3",
    "/api/compare?left=flat",
    "/api/compare-questions?left=flat",
    "/api/live",
    "/api/map",
)


def test_looking_changes_no_byte_of_the_run(client, run):
    before = contents(run)
    for route in ROUTES:
        assert client.get(route).status_code in (200, 202), route
    assert contents(run) == before


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_no_other_method_is_answered(client, method):
    for route in ROUTES:
        assert client.request(method, route).status_code == 405


def test_every_answer_has_the_policy(client):
    for route in (*ROUTES, "/nothing", "/api/document?id=nobody"):
        headers = client.get(route).headers
        assert {name: headers[name] for name in HEADERS} == HEADERS, route
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert HEADERS["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
def test_another_host_is_refused(client, host):
    assert client.get("/api/places", headers={"host": host}).status_code == 403


def test_another_sites_page_is_refused(client):
    assert client.get("/api/places", headers={"origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/%2e%2e/app.py",
        "/assets/..%2fapp.py",
        "/assets//etc/passwd",
        "/assets/vendor/../../app.py",
        "/api/about?run=../../etc",
        "/api/about?run=/etc",
        "/api/summary?arm=../../x",
        "/api/summary?arm=flat/../../x",
        "/api/summary?seed=-1",
        "/api/summary?seed=..",
        "/api/summary?seed=" + "9" * 5_000,
        "/api/summary?at=" + "9" * 5_000,
        "/api/lesson?iteration=" + "9" * 5_000,
        "/api/summary?at=1e9",
        "/api/summary?at=99999",
        "/api/document?id=../run.json",
        "/api/question?set=../trained&id=x&arms=flat",
        "/api/table?name=../gradient",
        "/api/table?name=retention:../x",
        "/api/lesson?iteration=x",
        "/api/lesson?iteration=99999",
        "/api/compare?run2=..",
    ],
)
def test_what_is_not_here_cannot_be_reached(client, path):
    answer = client.get(path)
    assert answer.status_code == 404, answer.text
    assert "Traceback" not in answer.text and len(answer.text) < 500


def test_what_is_no_run_is_refused_before_serving(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="not a store"):
        ViewedPlaces([tmp_path / "empty"])


def test_an_unchanged_file_is_not_sent_again(client):
    first = client.get("/assets/app.js")
    assert client.get("/assets/app.js", headers={"if-none-match": first.headers["etag"]}).status_code == 304
