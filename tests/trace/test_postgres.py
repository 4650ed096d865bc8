"""PostgreSQL only: URLs, one-sentence errors, connections that break during a commit, vectors."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import postgres
import pytest
from live_stores import LiveClient
from store_fixtures import records

import kbgym
from kbgym.backends.postgres import server, tables
from kbgym.backends.postgres import writer as writer_module
from kbgym.backends.postgres.server import parse
from kbgym.cli.main import run
from kbgym.errors import BadInput, Damaged, Failed, Missing
from kbgym.gym.actions import Add, Added, Link, Search
from kbgym.store import Record, Store, source
from kbgym.store.ledger import counts_of
from kbgym.store.record import Counts
from kbgym.trace.backend import ConnectionLost, copy_store, open_backend, save_store, shown
from kbgym.trace.events import Acted


@pytest.fixture
def url(cluster: postgres.Cluster, numbers: Iterator[int]) -> str:
    place = cluster.url(f"own{next(numbers)}")
    save_store(Store(records()), place)
    return place


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "schema", "at"),
        [
            ("postgresql://ada:pw@db:5433/k", "kbgym", None),
            ("postgresql://ada:pw@db:5433/k?store=cities", "kbgym_cities", None),
            ("postgresql://ada:pw@db:5433/k?store=cities&sslmode=require#57", "kbgym_cities", 57),
            ("postgres://ada:pw@db:5433/k?sslmode=require@57", "kbgym", 57),
            ("postgresql://ada:pw@db:5433/k@57", "kbgym", 57),
            ("postgresql://ada:pw@db:5433/k?store=cities@57", "kbgym_cities", 57),
        ],
    )
    def test_a_url_names_a_store_and_an_iteration(self, text: str, schema: str, at: int | None) -> None:
        address = parse(text)
        assert (address.schema, address.at) == (schema, at)
        assert "store=" not in address.server and "#" not in address.server
        assert address.server.startswith("postgresql://ada:pw@db:5433/k") and "@57" not in address.server
        assert ("sslmode" in text) == ("sslmode" in address.server)

    def test_a_number_behind_the_user_is_a_host(self) -> None:
        address = parse("postgresql://ada@57")
        assert address.at is None and address.server == "postgresql://ada@57"

    @pytest.mark.parametrize(
        "text",
        [
            "postgresql://ada:s3cret%2Fx@db/k#3",
            "postgresql://db/k?user=ada&password=s3cret/x",
        ],
    )
    def test_a_password_is_never_shown(self, text: str) -> None:
        assert "s3cret" not in shown(text)
        assert "s3cret" not in parse(text).redact("no entry with s3cret/x, s3cret%2Fx")

    @pytest.mark.parametrize(
        "text",
        [
            "postgresql://db/k?store=No-Name",
            "postgresql://db/k#abc",
            "postgresql://[db/k",
            "postgresql://a:s3cret/x@db",
            "postgresql://a:12/s3cret@db/k",
            "postgresql://a:s3#cret@db/k",
        ],
    )
    def test_what_is_no_address_is_said(self, text: str) -> None:
        with pytest.raises(BadInput) as caught:
            parse(text)
        assert "s3" not in str(caught.value) and "cret" not in str(caught.value)


class TestTroubles:
    def test_nobody_there(self, capfd: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            run(["store", "stats", "postgresql://ada:s3cretword@127.0.0.1:1/k"])
        said = capfd.readouterr().err
        assert stopped.value.code == 1 and "cannot connect to postgresql://ada@127.0.0.1:1/k" in said
        assert "s3cretword" not in said and said.count("\n") == 1

    def test_no_such_database_and_no_such_store(self, cluster: postgres.Cluster) -> None:
        with pytest.raises(BadInput):
            open_backend(cluster.url(database="nowhere"))
        with pytest.raises(BadInput, match=r"there is no store at .*store=nothing"):
            open_backend(cluster.url("nothing"))

    def test_a_wrong_password(self, cluster: postgres.Cluster) -> None:
        import psycopg

        rules = cluster.data / "pg_hba.conf"
        before = rules.read_text()
        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
            rules.write_text("local all guarded scram-sha-256\n" + before)
            connection.execute("SELECT pg_reload_conf()")
            try:
                wrong = cluster.url().replace(f"{postgres.USER}@", "guarded:s3cretword@")
                with pytest.raises(BadInput) as caught:
                    for _ in range(100):  # the server reads its rules a moment later
                        open_backend(wrong)
                assert "s3cretword" not in str(caught.value)
            finally:
                rules.write_text(before)
                connection.execute("SELECT pg_reload_conf()")

    def test_an_ordinary_user_needs_no_more_than_a_schema(self, cluster: postgres.Cluster) -> None:
        import psycopg

        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            connection.execute("CREATE ROLE ordinary LOGIN")
            connection.execute("GRANT CREATE ON DATABASE postgres TO ordinary")
        place = cluster.url("ordinary", user="ordinary")
        save_store(Store(records()), place)
        ada = LiveClient(place, "ada")
        assert ada.act(Add("One.")) == Added("n3")
        ada.close()
        open_backend(place).verify()

    def test_the_driver_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(Missing):
            open_backend("postgresql://db/k")

    def test_what_postgresql_cannot_hold(self, cluster: postgres.Cluster) -> None:
        with pytest.raises(BadInput):
            save_store(Store([source("a\0b", "x")]), cluster.url("nul"))
        with pytest.raises(BadInput):
            open_backend(cluster.url("nul"))
        save_store(Store([source("a", "x\0y")]), cluster.url("nul"))
        assert open_backend(cluster.url("nul")).store()["a"].text == "x\0y", "a text stands there as JSON"

    def test_a_folder_needs_none_of_this(self, tmp_path: Path) -> None:
        save_store(Store(records()), str(tmp_path / "s"))
        code = (
            "import sys; from kbgym.cli.main import run\n"
            f"try: run(['store', 'stats', {str(tmp_path / 's')!r}, '--quiet'])\n"
            "finally: print([name for name in ('psycopg', 'kbgym.backends.postgres.backend') if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == "[]"


class TestTampering:
    def test_initial_documents_changed_from_outside_are_found(self, url: str) -> None:
        open_backend(url).start("none", {}).close()
        place = open_backend(url)
        place.server.connection.execute(  # type: ignore[attr-defined]
            "UPDATE initial SET line = replace(line, 'Bo Ek', 'Nobody') WHERE id = 'd1'"
        )
        with pytest.raises(Damaged):
            place.verify()
        with pytest.raises(Damaged):
            place.store()

    def test_a_trace_changed_from_outside_is_found(self, url: str) -> None:
        shared = LiveClient(url, "ada")
        shared.act(Add("One."))
        shared.close()
        place = open_backend(url)
        place.server.connection.execute(  # type: ignore[attr-defined]
            "UPDATE trace SET line = replace(line, 'One.', 'Two.') WHERE seq = 3"
        )
        with pytest.raises(Damaged, match="line 3: the hash chain breaks"):
            assert place.events


def backends(cluster: postgres.Cluster) -> None:
    """End every other connection, as a restart of the server would."""
    import psycopg

    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )


class TestBrokenConnections:
    def test_between_two_actions_nobody_notices(self, url: str, cluster: postgres.Cluster) -> None:
        shared = LiveClient(url, "ada")
        shared.act(Add("One."))
        backends(cluster)
        assert shared.act(Add("Two.")) == Added("n4")
        backends(cluster)
        assert shared.writer.new_events() == ()
        assert LiveClient(url, "bo").act(Add("Three.")) == Added("n5"), "nobody stands in line for ever"
        open_backend(url).verify()

    @pytest.mark.parametrize("twice", [False, True], ids=["one crash", "two crashes"])
    def test_what_a_crash_lost_is_undone_in_who_had_seen_it(
        self, url: str, cluster: postgres.Cluster, twice: bool
    ) -> None:
        """The turn is over before the flush: for a moment others see what is not kept yet."""
        ada, bo = LiveClient(url, "ada"), LiveClient(url, "bo")
        ada.act(Add("Kept."))
        connection = open_backend(url).server.connection  # type: ignore[attr-defined]
        row = connection.execute("SELECT max(seq) FROM trace").fetchone()
        assert ada.act(Add("Seen, and not kept.")) == Added("n4")
        assert bo.act(Search("Seen")) and "n4" in bo.store
        # As a server has it that went down before the flush.
        connection.execute("DELETE FROM trace WHERE seq > %s", row)
        backends(cluster)
        for client in (ada, bo) if twice else ():
            client.writer._server.close()  # a connection made after the first crash ended before anything was asked
        assert bo.act(Add("Instead.")) == Added("n4") and bo.store["n4"].text == "Instead."
        assert ada.act(Add("After all.")) == Added("n5") and ada.store["n4"].text == "Instead."
        open_backend(url).verify()

    def test_in_a_turn_nothing_is_kept_and_it_is_said(self, url: str, cluster: postgres.Cluster) -> None:
        shared = LiveClient(url, "ada")
        shared.act(Add("One."))
        events = open_backend(url).events[1:]
        with pytest.raises(ConnectionLost), shared.writer.locked():
            backends(cluster)
            first = [e for e in events if not isinstance(e, Acted)]
            shared.writer.commit([*(_again(event) for event in first)])
        assert open_backend(url).iteration == 1
        assert shared.act(Add("Two.")) == Added("n4")

    @pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after the commit"])
    def test_an_unknown_outcome_is_looked_up(self, url: str, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        import psycopg

        shared = LiveClient(url, "ada")
        shared.act(Add("One."))
        real, broken = writer_module.send, []

        def send(
            connection: psycopg.Connection, statements: list[tuple[str, object]]
        ) -> list[list[tuple[object, ...]]]:
            commits = ("COMMIT", ()) in statements
            if commits and not broken and not after:
                broken.append(connection.close())
            rows = real(connection, statements)
            if commits and not broken:
                broken.append(connection.close())
                raise psycopg.OperationalError("the connection was lost")
            return rows

        monkeypatch.setattr(writer_module, "send", send)
        assert shared.act(Add("Two.")) == Added("n4")
        assert broken
        acted = [event.action for event in open_backend(url).events if isinstance(event, Acted)]
        assert acted == [Add("One."), Add("Two.")], "once, whatever the client was told"
        assert shared.act(Link("n3", "n4")) and shared.iteration == 3
        open_backend(url).verify()

    def test_a_server_that_stays_away_is_said(
        self, url: str, cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kbgym.backends.postgres.server.PATIENCE", 0.3)
        shared = LiveClient(url, "ada")
        cluster.stop("immediate")
        try:
            with pytest.raises(Failed):
                shared.writer.new_events()
        finally:
            cluster.start()
        assert shared.act(Add("One.")) == Added("n3")

    def test_a_turn_is_not_kept_by_the_dead(self, url: str) -> None:
        code = (
            f"import os, sys\nsys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
            f"from live_stores import LiveClient\nshared = LiveClient({url!r}, 'ada')\n"
            "with shared.writer.locked():\n    print('held', flush=True)\n    os.kill(os.getpid(), 9)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "held\n" and done.returncode == -9
        shared = LiveClient(url, "bo")
        assert shared.act(Add("One.")) == Added("n3")


def _again(event: object) -> object:
    import msgspec

    return msgspec.structs.replace(event, iteration=2)  # type: ignore[type-var]


class TestSearching:
    @pytest.mark.parametrize("documents", ["held", "read"])
    def test_searching_from_the_command_line(self, url: str, capfd: pytest.CaptureFixture[str], documents: str) -> None:
        url += f"&documents={documents}"
        open_backend(url).start("hash", {}).close()

        def search(query: str) -> list[str]:
            with pytest.raises(SystemExit) as stopped:
                run(["store", "search", url, query, "--json"])
            printed = capfd.readouterr()
            assert (stopped.value.code, printed.err) == (0, "")
            return [row["id"] for row in json.loads(printed.out)["results"]]

        assert search("Bo Ek works as a baker.")[0] == "d4"
        shared = LiveClient(url, "ada")
        shared.act(Add("Nils Holm keeps geese."))
        assert search("Nils Holm keeps geese.")[0] == "n3"
        from kbgym.gym.actions import Delete, Edit

        shared.act(Edit("n3", "Nils Holm keeps ducks."))
        shared.act(Delete("d4"))
        assert search("Nils Holm keeps ducks.")[0] == "n3"
        assert "d4" not in search("Bo Ek works as a baker.")

    def test_a_server_without_pgvector_is_searched_all_the_same(
        self, cluster: postgres.Cluster, capfd: pytest.CaptureFixture[str]
    ) -> None:
        import psycopg

        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            connection.execute("CREATE ROLE humble LOGIN")
            connection.execute("CREATE DATABASE plain OWNER humble")
        place = cluster.url("s", "plain", "humble")
        save_store(Store([Record("a", "Anna Berg lives in Lund.", origin="a")]), place)
        open_backend(place).start("hash", {}).close()

        def search(place: str) -> tuple[int, str]:
            with pytest.raises(SystemExit) as stopped:
                run(["store", "search", place, "Lund", "--json"])
            printed = capfd.readouterr()
            return int(stopped.value.code or 0), printed.out + printed.err

        code, said = search(place)
        assert code == 0 and '"a"' in said, "a store that is held needs none"
        code, said = search(f"{place}&documents=read")
        assert code == 2 and "the extension pgvector, which the server does not have" in said


def test_a_world_keeps_its_sources(cluster: postgres.Cluster, tmp_path: Path) -> None:
    from kbgym.canonical import write_lines
    from kbgym.worlds.world import Document, Source

    world = tmp_path / "run" / "world"
    world.mkdir(parents=True)
    write_lines(world / "documents.jsonl", [Document("a", "A.", "kind", ("p",), Source("notes.md", 3, 9))])
    place = cluster.url("world")
    copy_store(str(tmp_path / "run"), place)
    assert kbgym.open(place).sources(["a"]) == {"a": Source("notes.md", 3, 9)}
    copy_store(place, str(tmp_path / "again"))
    assert (tmp_path / "again" / "documents.jsonl").read_bytes() == (world / "documents.jsonl").read_bytes()


def test_a_trained_run_and_its_copy_give_the_same_exam(
    cluster: postgres.Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def kbgym(*words: object) -> dict[str, object]:
        with pytest.raises(SystemExit) as stopped:
            run([*(str(word) for word in words), "--json"])
        printed = capfd.readouterr()
        assert stopped.value.code == 0, printed.err
        found: dict[str, object] = json.loads(printed.out)
        return found

    world, trained, place = tmp_path / "world", tmp_path / "run", cluster.url("trained")
    kbgym("generate", "--people", 60, "--seed", 0, "--out", world)
    kbgym("train", "--world", world, "--out", trained, "--set", "embedder=hash", "--questions", 4, "--epochs", 1)
    copied = kbgym("store", "copy", trained, place)
    assert copied["hash"] == kbgym("store", "replay", trained)["hash"] == kbgym("store", "replay", place)["hash"]
    here = kbgym("exam", trained, "--set", "eval", "--out", tmp_path / "a.jsonl")
    there = kbgym("exam", place, "--world", world, "--set", "eval", "--out", tmp_path / "b.jsonl")
    assert here == there
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert kbgym("audit", place, "--world", world)["coverage"] == kbgym("audit", trained)["coverage"]


@pytest.mark.parametrize("search", ["words", "hybrid"])
def test_words_find_in_a_database_what_they_find_in_a_folder(
    cluster: postgres.Cluster, tmp_path: Path, search: str
) -> None:
    folder, place = tmp_path / "run", cluster.url(f"searched_{search}")
    kbgym.train(kbgym.generate(people=40), folder, questions=2, epochs=1, embedder="hash", search=search)
    copy_store(str(folder), place)
    with kbgym.open(str(folder)) as here, kbgym.open(place) as there:
        texts = [record.text for record in here.store]
        for query in (texts[0], texts[-1], "Who is a friend?"):
            assert here.search(query) == there.search(query) != []
            assert here.search(query, 2) == there.search(query, 2)


def test_a_baseline_is_written_to_a_database(
    cluster: postgres.Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from family import family

    family().save(tmp_path / "world")
    place = cluster.url("arm")
    with pytest.raises(SystemExit) as stopped:
        run(["baseline", "hipporag", "--world", str(tmp_path / "world"), "--out", place, "--quiet"])
    assert stopped.value.code == 0, capfd.readouterr().err
    assert open_backend(place).arm == "hipporag" and open_backend(place).store().links > 0
    copy_store(place, str(tmp_path / "again"))
    assert open_backend(tmp_path / "again").arm == "hipporag"


def test_a_store_in_a_database_is_opened_searched_and_examined(cluster: postgres.Cluster) -> None:
    place = cluster.url("opened")
    save_store(Store(records()), place)
    open_backend(place).start("hash", {"forward_budget": 2}).close()
    with kbgym.open(place) as opened:
        assert (opened.kind, opened.settings.forward_budget, opened.world) == ("store", 2, None)
        first = next(iter(opened.store))
        assert opened.search(first.text)[0].id == first.id
        mine = opened.store.copy()
        mine.delete(first.id)
        assert first.id not in [hit.id for hit in opened.with_store(mine).search(first.text)]
        question = kbgym.Question("q", "test", "c", "t", "Who?", ("nobody",))
        assert opened.examine(lambda view: kbgym.Search("who"), [question]).rows[0].actions == 2
    assert open_backend(place).store().fingerprint == Store(records()).fingerprint


def test_copying_may_be_silent_for_longer_than_a_turn(
    cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(store: Store) -> Counts:
        time.sleep(0.5)
        return counts_of(store)

    monkeypatch.setitem(server._SETTINGS, "idle_in_transaction_session_timeout", "100ms")
    monkeypatch.setattr(tables, "counts_of", slowly)
    save_store(Store([source("a", "A.")]), cluster.url("slow"))
    assert open_backend(cluster.url("slow")).store()["a"].text == "A."
