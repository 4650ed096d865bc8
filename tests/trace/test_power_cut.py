"""Power cuts: what was acknowledged is there afterwards, and what is there replays."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from family import family
from power_cut import Disk, Op, record

import kbgym
from kbgym.canonical import encode
from kbgym.cli.main import run as verb
from kbgym.corpus.importing import load_old
from kbgym.serving.tokens import Tokens
from kbgym.store import Store, source
from kbgym.trace.backend import save_store
from kbgym.trace.folder import StoreFolder
from kbgym.trace.log import has_begun
from kbgym.training.run import Run
from kbgym.worlds.world import World

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]

DRIVER = """
import os
from pathlib import Path
import kbgym
from kbgym.cli.main import run
from kbgym.serving.tokens import new_token, revoke

acknowledged = os.open("acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def ack(what):
    os.write(acknowledged, f"{what}\\n".encode())

def verb(*words):
    try:
        run([*words, "--quiet"])
    except SystemExit as ended:
        assert not ended.code, words
    ack("done")

"""
TRAINING = {"questions": 4, "epochs": 2, "embedder": "hash", "search": "words"}
PAGES = {"ada.md": "# Ada\n\nAda is a baker. Ada lives in Lund.\n", "bo.md": "# Bo\n\nBo is a smith.\n"}
LATER = {"bo.md": "# Bo\n\nBo is a tailor. Bo sings.\n", "cy.md": "# Cy\n\nCy is a baker.\n"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a world and a run."""
    folder = tmp_path_factory.mktemp("trained")
    kbgym.generate(people=40, seed=3).save(folder / "world")
    kbgym.train(folder / "world", folder / "run", **TRAINING)
    return folder


def recorded(root: Path, code: str) -> list[Op]:
    return record([sys.executable, "-c", DRIVER + code], root, {**os.environ, "OMP_NUM_THREADS": "1"})


def cut(root: Path, code: str, count: int, check: Callable[[Path, list[str]], None]) -> None:
    """Record what the code does in a folder, cut the power `count` times, and check what is left each time."""
    disk, chance = Disk(root), Random(7)
    operations = recorded(root, code)
    assert sum(what == "sync" for what, *_ in operations) > 1
    moments = [*sorted(chance.choices(range(len(operations) + 1), k=count - 1)), len(operations)]
    done = 0
    for number, moment in enumerate(moments):
        for operation in operations[done:moment]:
            disk.apply(operation)
        done = moment
        left = root.parent / f"{root.name}-left"
        disk.after_cut(left, chance if number % 2 else None)
        check(left, disk.acknowledged)
        shutil.rmtree(left)
    assert disk.acknowledged


def test_training(trained: Path, tmp_path: Path) -> None:
    root, whole = tmp_path / "root", (trained / "run" / "trace.jsonl").read_bytes()
    shutil.copytree(trained / "world", root / "world")
    checks = 0

    def check(left: Path, acknowledged: list[str]) -> None:
        nonlocal checks
        checks += 1
        if acknowledged or (left / "run").exists():
            assert Run(left / "run").world.documents
        trace = left / "run" / "trace.jsonl"
        if acknowledged or has_begun(trace):
            folder = StoreFolder(left / "run")
            assert folder.position >= int(acknowledged[-1] if acknowledged else 0)
            assert whole.startswith(trace.read_bytes()[: folder.reading.end.size]), "another trace"  # type: ignore[union-attr]
            assert folder.store()
        if checks % 8 == 0:
            kbgym.train(left / "world", left / "run", **TRAINING)
            assert trace.read_bytes() == whole

    code = f"kbgym.train('world', 'run', tick=lambda done, *_: ack(done), **{TRAINING!r})"
    cut(root, code, 80, check)


def test_rollback(trained: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(trained, root)
    before = StoreFolder(root / "run").iteration

    def check(left: Path, acknowledged: list[str]) -> None:
        folder = StoreFolder(left / "run")
        assert folder.iteration in ((before + 1,) if acknowledged else (before, before + 1))
        assert folder.store().fingerprint == folder.store(2 if folder.iteration > before else None).fingerprint

    cut(root, "verb('store', 'rollback', 'run', '--to', '2')", 25, check)


def test_copy(trained: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(trained, root)
    whole = StoreFolder(root / "run").store().fingerprint

    def check(left: Path, acknowledged: list[str]) -> None:
        if acknowledged or (left / "stores" / "copy").exists():
            assert StoreFolder(left / "stores" / "copy").store().fingerprint == whole

    cut(root, "verb('store', 'copy', 'run', 'stores/copy')", 25, check)


def test_update_of_a_world_and_its_store(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "pages").mkdir(parents=True)
    for name, text in PAGES.items():
        (root / "pages" / name).write_text(text)
    with pytest.raises(SystemExit):
        verb(["import", "corpus", str(root / "pages"), "--out", str(root / "world"), "--quiet"])
    shutil.copytree(root / "world", root / "store")
    old = encode(World.load(root / "world"))
    for name, text in LATER.items():
        (root / "pages" / name).write_text(text)

    def check(left: Path, acknowledged: list[str]) -> None:
        world = load_old(left / "world")
        folder = StoreFolder(left / "store")
        said = " ".join(record.text for record in folder.store())
        assert [word in said for word in ("tailor", "smith")] == [folder.iteration == 1, folder.iteration == 0]
        if acknowledged:
            assert encode(world) != old and folder.iteration == 1

    code = "verb('import', 'corpus', 'pages', '--out', 'world', '--update', '--store', 'store')"
    cut(root, code, 35, check)


SERVED = """
import json, signal, subprocess, sys
from urllib.request import Request, urlopen
command = ["serve", "store", "--http", "127.0.0.1:0", "--no-auth", "--role", "curator", "--json", *SETTINGS]
start = [sys.executable, "-c", "from kbgym.cli.main import run; run()", *command]
server = subprocess.Popen(start, stdout=subprocess.PIPE)
url = json.loads(server.stdout.readline())["url"]

def post(verb, **body):
    asked = Request(f"{url}/v1/{verb}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.loads(urlopen(asked, timeout=100).read())

def edit(id, number):
    post("read", id=id)
    post("edit", id=id, text=f"{id} was edited {number} times.")
    ack(f"{id} {number}")

added = [post("add", text=f"A note of {name}.")["result"]["id"] for name in ("Ada", "Bo")]
ack("added")
for number in range(1, 4):
    for id in added:
        edit(id, number)
for question, answer in LESSONS:
    lesson = post("teach", question=question, answers=[answer])["lesson"]
    ack(f"lesson {lesson['document']}")
edit(added[0], 4)
server.send_signal(signal.SIGINT)
server.wait(60)
"""


def test_a_served_store(tmp_path: Path) -> None:
    """Edits and lessons are acknowledged by the server's replies."""
    root = tmp_path / "root"
    save_store(Store(source(document.id, document.text) for document in family().documents), root / "store")
    (root / "store" / "world.json").write_text('{"kind": "people"}')
    lessons = [("What is the job of Ada Alm?", "cooper"), ("Whose job is cooper?", "Ada Alm")]
    seen: set[str] = set()

    def check(left: Path, acknowledged: list[str]) -> None:
        folder = StoreFolder(left / "store")
        store, edits = folder.store(), {}
        for said in acknowledged:
            name, _, number = said.partition(" ")
            if name == "lesson":
                assert number in store
            elif number:
                edits[name] = int(number)
        added = [record for record in store if record.flag == "authored"]
        assert len(added) >= (2 if acknowledged else 0)
        for id, number in edits.items():
            assert store[id].text in (f"{id} was edited {number} times.", f"{id} was edited {number + 1} times.")
        seen.update(acknowledged)

    settings = ["--set", "embedder=hash", "--set", "reader=reference", "--set", "curator=reference"]
    cut(root, f"SETTINGS, LESSONS = {settings!r}, {lessons!r}\n{SERVED}", 60, check)
    assert sum(said.startswith("lesson") for said in seen) == 2


def test_tokens(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    states: list[set[str]] = [set()]
    code = "file = Path('tokens.jsonl')\n"
    for number in range(10):
        name = f"client{number % 6}"
        adds = name not in states[-1]
        states.append(states[-1] ^ {name})
        code += (
            f"{'new_token(file, ' + repr(name) + ', ' + repr('reader') + ')' if adds else f'revoke(file, {name!r})'}\n"
        )
        code += "ack('done')\n"

    def check(left: Path, acknowledged: list[str]) -> None:
        file = left / "tokens.jsonl"
        there = {entry.name for entry in Tokens(file)._entries} if file.exists() else set()
        assert there in states[len(acknowledged) : len(acknowledged) + 2]

    cut(root, code, 35, check)
