"""A store whose documents stay in the database: read when asked for, some of them kept, the same in every byte."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import postgres
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_stores import LiveClient
from pickling_engine import Posted
from store_fixtures import ACTIONS, SENTENCES, all_of, records

import kbgym
from kbgym.backends.postgres import base as base_module
from kbgym.backends.postgres.backend import PostgresBackend
from kbgym.backends.postgres.base import DatabaseBase
from kbgym.canonical import encode
from kbgym.cli.main import run
from kbgym.errors import BadInput
from kbgym.experiments.chunks import examine_on
from kbgym.gym.actions import Action, Add, Added, Delete, Edit, Link, Search
from kbgym.gym.environment import apply
from kbgym.gym.tools import check
from kbgym.store import Record, Store, source
from kbgym.trace.backend import copy_store, open_backend, save_store


@pytest.fixture
def url(cluster: postgres.Cluster, numbers: Iterator[int]) -> str:
    place = cluster.url(f"base{next(numbers)}")
    save_store(Store(records()), place)
    return place + "&documents=read"


def opened(url: str) -> PostgresBackend:
    place = open_backend(url)
    assert isinstance(place, PostgresBackend)
    return place


def test_it_is_read_or_held_as_the_url_says(url: str) -> None:
    assert isinstance(open_backend(url).initial.base, DatabaseBase)
    assert open_backend(url.replace("read", "held")).initial.base is None
    assert open_backend(url.replace("&documents=read", "")).initial.base is None, "a small store is held"
    with pytest.raises(BadInput):
        open_backend(url.replace("read", "both"))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTIONS, max_size=12))
def test_what_is_done_to_it_comes_out_the_same(url: str, actions: list[Action]) -> None:
    read, held = open_backend(url).store(), Store(records())
    for action in actions:
        checked = check(action, "curator")
        assert apply(read, checked) == apply(held, checked)
    assert all_of(read) == all_of(held)


def test_originals_carried_elsewhere_are_found(cluster: postgres.Cluster) -> None:
    place = cluster.url("carried")
    kept = [source("a", "One."), Record("b", "Two.", (), "x", "edited", ("y", "z"))]
    save_store(Store(kept), place)
    base = opened(place + "&documents=read").base
    carriers = [base.carriers(origin) for origin in ("a", "x", "z", "b", "no\0one")]
    assert carriers == [("a",), ("b",), ("b",), (), ()]


def test_no_id_breaks_it(url: str) -> None:
    store = open_backend(url).store()
    for id in ("", "nobody", "x\0y", "\ud800", "'; DROP TABLE initial; --"):
        assert id not in store and store.inbound(id) == ()
    assert len(list(store)) == len(store) == 9


def test_little_is_remembered(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_module, "CACHED", 4)
    place = opened(url)
    base, asked = DatabaseBase(place.address, place.meta), []
    real = base.ask
    monkeypatch.setattr(base, "ask", lambda *given: asked.append(given) or real(*given))
    for _ in range(3):
        for number in range(7):
            record = base.get(f"d{number}")
            assert record is not None and record.text == SENTENCES[number]
    assert len(base._records._values) <= 4 and len(asked) > 14, "it had to ask again for what it forgot"
    asked.clear()
    base.fetch(["d0", "d1", "nobody"])
    assert len(asked) == 1 and base.get("d1") and base.get("nobody") is None and len(asked) == 1


def test_those_who_read_the_same_store_share_what_was_read(url: str) -> None:
    one, other = opened(url), opened(url)
    assert one.base is other.base
    one.close()
    assert other.base.get("d0")
    store = one.store()
    store.add("Di Ek lives in Malmö.")
    there = pickle.loads(pickle.dumps(store))
    assert all_of(there) == all_of(store) and there.base is store.base
    assert len(pickle.dumps(store)) < 3000, "the documents do not travel"


def test_many_threads_read_at_once(url: str) -> None:
    place = opened(url)
    base, wrong = DatabaseBase(place.address, place.meta), []

    def look() -> None:
        for number in range(60):
            record = base.get(f"d{number % 7}")
            if record is None or record.text != SENTENCES[number % 7] or len(base.inbound("d0")) != 1:
                wrong.append(number)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_a_broken_connection_is_made_again(url: str, cluster: postgres.Cluster) -> None:
    base = opened(url).base
    assert base.get("d0")
    cluster.stop("immediate")
    cluster.start()
    assert base.get("d1") and len(list(base)) == 9


def test_many_write_where_documents_are_read(url: str) -> None:
    ada, bo = LiveClient(url, "ada"), LiveClient(url, "bo")
    assert isinstance(ada.store.base, DatabaseBase)
    assert ada.act(Add("Di Ek lives in Malmö.")) == Added("n3")
    assert bo.act(Link("n3", "d0")) and bo.act(Edit("d1", "Bo Ek lives in Umeå.")) and bo.act(Delete("d4"))
    assert ada.act(Search("Umeå")) and ada.store["d1"].text == "Bo Ek lives in Umeå." and "d4" not in ada.store
    ada.close()
    bo.close()
    held = open_backend(url.replace("read", "held")).store()
    assert all_of(open_backend(url).store()) == all_of(held) and held["n3"].links == ("d0",)
    place = opened(url)
    place.rollback(1, "a test")
    place.verify()
    assert all_of(open_backend(url).store()) == all_of(open_backend(url.replace("read", "held")).store())


def test_it_is_copied_back_in_every_byte(url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("copy") / "again"
    copy_store(url, str(target))
    assert (target / "records.jsonl").read_bytes() == b"".join(encode(record) + b"\n" for record in records())


def test_tables_of_another_version_are_rejected(cluster: postgres.Cluster) -> None:
    place = cluster.url("newer")
    save_store(Store(records()), place)
    opened(place).server.connection.execute("UPDATE meta SET version = 99")
    with pytest.raises(BadInput):
        open_backend(place)


@pytest.mark.parametrize("search", ["vectors", "words", "hybrid"])
def test_a_reader_finds_the_same_held_or_read(cluster: postgres.Cluster, tmp_path: Path, search: str) -> None:
    world = kbgym.generate(people=40)
    kbgym.train(world, tmp_path / "run", questions=3, epochs=1, embedder="hash", search=search, strategy="class")
    world.save(tmp_path / "world")
    place = cluster.url(f"examined_{search}")
    copy_store(str(tmp_path / "run"), place)
    rows = []
    for documents in ("held", "read"):
        with kbgym.open(f"{place}&documents={documents}", world=tmp_path / "world") as opened:
            assert (opened.store.base is None) == (documents == "held")
            rows.append(opened.examine(set="eval").rows)
    assert rows[0] == rows[1] and len(rows[0]) > 5


@pytest.mark.parametrize("search", ["hybrid", "words"])
def test_workers_are_sent_no_documents_and_read_few(
    cluster: postgres.Cluster, tmp_path: Path, search: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = kbgym.generate(people=40)
    kbgym.train(world, tmp_path / "run", questions=3, epochs=1, embedder="hash", search=search, strategy="class")
    world.save(tmp_path / "world")
    place, engine = cluster.url(f"workers_{search}"), Posted()
    copy_store(str(tmp_path / "run"), place)
    with kbgym.open(f"{place}&documents=read", world=tmp_path / "world") as opened:
        untouched = [record.text for record in opened.store if record.flag == "untouched" and not record.links]
        alone = opened.examine(set="eval").rows
        monkeypatch.delattr(DatabaseBase, "__iter__")  # nobody goes through all of them
        assert examine_on(engine, opened, "reference", opened.questions("eval")).rows == alone
    assert untouched and not [text for text in untouched if text.encode() in engine.sent[0]]


def test_a_trainer_teaches_the_same_held_or_read(cluster: postgres.Cluster, tmp_path: Path) -> None:
    kbgym.generate(people=40).save(tmp_path / "world")
    taught = set()
    for documents in ("held", "read"):
        place = cluster.url(f"taught_{documents}")
        copy_store(str(tmp_path / "world"), place)
        words = ["train", "--world", tmp_path / "world", "--out", tmp_path / documents, "--questions", 2, "--epochs", 1]
        words += [
            "--set",
            f"store={place}&documents={documents}",
            "--set",
            "embedder=hash",
            "--search",
            "hybrid",
            "--quiet",
        ]
        with pytest.raises(SystemExit) as stopped:
            run([*map(str, words), "--set", "strategy=class"])
        assert stopped.value.code == 0
        taught.add((open_backend(place).store().fingerprint, len(open_backend(place).events)))
    assert len(taught) == 1


def test_processes_that_are_forked_read_on_connections_of_their_own(url: str) -> None:
    """A process pool created after the store was opened must not share its connection, or it would hang."""
    code = (
        "import multiprocessing\n"
        "from kbgym.trace.backend import open_backend\n"
        f"store = open_backend({url!r}).store()\n"
        "ids = [record.id for record in store]\n"
        "def read(number):\n"
        "    return [line for _ in range(20) for id in ids for line in store.base.lines([id])]\n"
        "with multiprocessing.get_context('fork').Pool(4) as pool:\n"
        "    found = pool.map_async(read, range(40), chunksize=1).get(30)\n"
        "assert found == [read(0)] * 40, 'they read the same'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
