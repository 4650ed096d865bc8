"""A disk that is full and a database that is away, again and again, while a server learns.

Nothing acknowledged is lost, what cannot be kept is refused, learning goes on by itself afterwards, and the end comes
when it is told to.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import postgres
import pytest
from family import family
from serving import Server, client, family_store, make_tokens, replayed

from kbgym.store import Store, source
from kbgym.trace.backend import open_backend, save_store
from kbgym.trace.folder import StoreFolder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
FILLED, STOPPED = 10, 5


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


class Client:
    """A curator who writes, asks and gives golds, and notes down what was acknowledged."""

    def __init__(self, server: Server, token: str) -> None:
        self._http = client(server, token)
        self.added: dict[str, str] = {}
        self.golds: list[str] = []
        self.count = 0

    def add(self) -> bool:
        self.count += 1
        text = f"Nils Holm keeps {self.count} geese."
        answer = self._post("/v1/add", {"text": text})
        if answer is not None:
            self.added[answer["result"]["id"]] = text
        return answer is not None

    def teach(self) -> bool:
        asked = self._post("/v1/questions", {"question": "What is the job of Ada Alm?"})
        given = asked and self._post(f"/v1/questions/{asked['id']}/gold", {"answers": ["baker"]})
        if asked and given:
            self.golds.append(asked["id"])
        return bool(given)

    @property
    def learnt(self) -> bool:
        """Return True if every expected answer that was given has been learnt from."""
        learning = self._http.get("/health").json()["learning"]
        assert learning["running"] and not learning["set_aside"], learning
        return not learning["waiting"] and not learning["failures"]

    def close(self) -> None:
        self._http.close()

    def _post(self, path: str, body: dict[str, object]) -> dict[str, dict[str, str]] | None:
        answer = self._http.post(path, json=body, timeout=60)
        if answer.status_code == 503:
            return None
        assert answer.status_code == 200, answer.text
        found: dict[str, dict[str, str]] = answer.json()
        return found


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(place)]).returncode:
        pytest.skip("a disk of its own can be mounted by root only; the test of a file's greatest length goes further")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def filled(place: Path) -> None:
    with (place / "rubbish").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4_096)
        except OSError:
            pass


def test_a_disk_filled_and_emptied(small_disk: Path) -> None:
    outages(small_disk / "store", lambda _: filled(small_disk), lambda _: (small_disk / "rubbish").unlink())


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The same without mounting a file system: a limit on file size stops the trace from growing."""

    def full(server: Server) -> None:
        size = (tmp_path / "store" / "trace.jsonl").stat().st_size
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))

    def free(server: Server) -> None:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)

    outages(tmp_path / "store", full, free)


def outages(place: Path, fill: Callable[[Server], None], empty: Callable[[Server], None]) -> None:
    family_store(place)
    tokens = make_tokens(place)
    server = Server(place)
    try:
        ada = Client(server, tokens.curator)
        for _ in range(FILLED):
            assert ada.add() and ada.teach()
            fill(server)
            until(lambda: not ada.add())
            assert not ada.teach()
            with client(server, tokens.reader) as rex:
                assert rex.post("/v1/search", json={"query": "baker"}).status_code == 200, "looking needs no disk"
            empty(server)
            until(ada.add)
        assert ada.teach()
        until(lambda: ada.learnt)
        ada.close()
    finally:
        said = server.stop()
    assert "Traceback" not in said, said
    check(StoreFolder(place), ada)
    assert replayed(place)


def check(place: StoreFolder, ada: Client) -> None:
    store = place.store()
    assert [id for id, text in ada.added.items() if store[id].text != text] == []
    graded = {getattr(event, "question", None) for event in place.events}
    assert set(ada.golds) <= graded and len(ada.added) >= FILLED


@pytest.mark.skipif(postgres.installed() is None, reason=postgres.MISSING)
def test_a_database_stopped_and_started(tmp_path: Path) -> None:
    cluster = postgres.Cluster()
    try:
        url = cluster.url("outage")
        save_store(Store(source(d.id, d.text) for d in family().documents), url)
        tokens = make_tokens(tmp_path)
        server = Server(url, "--tokens", str(tmp_path / "tokens.jsonl"))
        try:
            ada = Client(server, tokens.curator)
            for number in range(STOPPED):
                assert ada.add() and ada.teach() and ada.teach()
                cluster.stop("immediate" if number % 2 else "fast")
                time.sleep(1)
                cluster.start()
                until(ada.add)
            assert ada.teach()
            until(lambda: ada.learnt)
            cluster.stop()
            ada.close()
        finally:
            said = server.stop()
        assert "Traceback" not in said, said
        cluster.start()
        opened = open_backend(url)
        opened.verify()
        store = opened.store()
        assert [id for id, text in ada.added.items() if store[id].text != text] == [] and len(ada.added) >= 2 * STOPPED
        opened.close()
    finally:
        cluster.remove()
