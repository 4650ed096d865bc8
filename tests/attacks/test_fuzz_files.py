"""Every file format, damaged in every way hypothesis finds: no traceback, one sentence, exit 1 or 2, nothing changed.

A damaged file may still be a good one; then the verb does its work. A few hundred cases run with every change, two
thousand in the slow suite, and as many as KBGYM_FUZZ says where that is set (20,000 take about ten minutes).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from damaging import damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_fixtures import Live

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.values import Call, Message, Reply, Request
from kbgym.cli.main import run
from kbgym.gym.actions import Add, Link, Search
from kbgym.serving.tokens import new_token
from kbgym.worlds.world import Document, Question, World

TOLD = ("Ada Alm lives in Lund.", "Bo Alm lives in Oslo.", "Ada Alm's job is baker.", "Ada Alm is married to Bo Alm.")


def world(place: Path) -> None:
    documents = [Document(f"d{n}", text, about=("p1",)) for n, text in enumerate(TOLD)]
    asked = [
        Question(f"q{n}", split, "QC1", "t1", f"Where does {name} live?", (city,), support=(f"d{n}",))
        for n, (split, name, city) in enumerate((("train", "Ada Alm", "Lund"), ("test_in", "Bo Alm", "Oslo")))
    ]
    World(tuple(documents), tuple(asked), {"kind": "corpus", "seed": 0}).save(place)


def a_store(place: Path) -> None:
    live = Live(place / "store")
    live.act(Search("Lund"), "reader")
    live.act(Add("Readers of Ibsen."))
    live.commit(graded=0.5)
    live.act(Link("n3", "d0"))
    live.commit()
    live.rollback(1)
    live.close()


def a_run(place: Path) -> None:
    world(place / "world")
    flags = ["--questions", "1", "--epochs", "1", "--set", "embedder=hash", "--quiet"]
    called("train", "--world", str(place / "world"), "--out", str(place / "run"), *flags)
    called("exam", str(place / "run"), "--set", "test_in", "--out", str(place / "rows.jsonl"), "--quiet")


def a_cassette(place: Path) -> None:
    tape = Cassette(place / "cassette.jsonl")
    tape.introduce("reader", "llm:openai/m", {"model": "m", "temperature": 0.3, "effort": None, "max_tokens": 9})
    for number in range(2):
        request = Request("m", "You read.", (Message("user", f"Ask {number}"),), ({"name": "answer"},), max_tokens=9)
        tape.take(f"hash{number}", request, Reply(text="x", calls=(Call("answer", '{"text":"Lund"}'),)))
    tape.close()
    a_store(place)


def traffic(place: Path) -> None:
    a_store(place)
    rows = [{"question": "Where does Ada live?", "answers": ["Lund"]}, {"question": "Who?", "answers": ["Bo"]}]
    (place / "traffic.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def some_tokens(place: Path) -> None:
    a_store(place)
    for name in ("ada", "rex"):
        new_token(place / "store" / "tokens.jsonl", name, "reader", "2999-12-31")


def toml(place: Path) -> None:
    a_store(place)
    (place / "tokens.toml").write_text('[[token]]\nname = "ada"\nrole = "reader"\ntoken = "secret"\n', encoding="utf-8")
    (place / "kbgym.toml").write_text("[training]\ntraining_questions = 1\n", encoding="utf-8")
    world(place / "world")


def an_experiment(place: Path) -> None:
    exp = place / "exp"
    exp.mkdir()
    training = {"name": "trained-paper", "label": "Trained", "settings": {"questions": 1, "epochs": 1}}
    plan = {"kind": "paper", "trainings": [training], "arms": ["flat"], "seeds": [0], "n": 1}
    (exp / "experiment.json").write_text(json.dumps(plan), encoding="utf-8")


def an_arm(place: Path) -> None:
    a_store(place)
    (place / "store" / "arm.json").write_text('{"arm": "hipporag", "links": 2}', encoding="utf-8")


GENERAL_PLAY = "The general agents play: they read any text, and the reference agents do not know this world's grammar."


class Format(msgspec.Struct, frozen=True):
    """A file in a folder, and the verbs that read it; {} stands for the folder."""

    make: Callable[[Path], None]
    file: str
    verbs: tuple[str, ...]
    trace: bool = False


def only_world(place: Path) -> None:
    world(place / "world")


STORE = ("store replay {}/store", "store log {}/store", "store blame {}/store n3", "store stats {}/store")
WORLD = (
    "exam {}/world --set test_in --set embedder=hash",
    "audit {}/world",
    "baseline hipporag --world {}/world --out {}/out",
    "train --world {}/world --out {}/out --set embedder=hash",
)
RUN = (
    "store replay {}/run",
    "exam {}/run --set test_in --set embedder=hash",
    "probe {}/run",
    "learn {}/run --idle --budget 5 --set embedder=hash",
    "audit {}/run",
    "report {}/run --out {}/report",
)
RECORDED = "exam {}/store@0 --world {}/world --agent cassette:{}/cassette.jsonl --set embedder=hash"
FORMATS = {
    "trace": Format(
        a_store, "store/trace.jsonl", (*STORE, "learn {}/store --agenda", "store diff {}/store@0 {}/store"), True
    ),
    "head": Format(a_store, "store/trace.head", STORE[:2]),
    "records": Format(a_store, "store/records.jsonl", (*STORE, "store search {}/store@0 Lund")),
    "run.json": Format(a_run, "run/run.json", RUN),
    "run's trace": Format(a_run, "run/trace.jsonl", RUN[:5], True),
    "documents": Format(only_world, "world/documents.jsonl", WORLD),
    "questions": Format(only_world, "world/questions.jsonl", WORLD),
    "facts": Format(only_world, "world/world.json", WORLD),
    "rows": Format(a_run, "rows.jsonl", ("exam {}/run --set test_in --set embedder=hash --out {}/rows.jsonl",)),
    "header": Format(a_run, "rows.exam.json", ("exam {}/run --set test_in --set embedder=hash --out {}/rows.jsonl",)),
    "cassette": Format(
        a_cassette, "cassette.jsonl", ("export transcripts {}/cassette.jsonl --out {}/chats.jsonl", RECORDED)
    ),
    "traffic": Format(traffic, "traffic.jsonl", ("learn {}/store --traffic {}/traffic.jsonl --set embedder=hash",)),
    "tokens": Format(some_tokens, "store/tokens.jsonl", ("serve {}/store --revoke nobody",)),
    "tokens.toml": Format(toml, "tokens.toml", ("serve {}/store --tokens {}/tokens.toml --new-token ada",)),
    "kbgym.toml": Format(toml, "kbgym.toml", ("train --world {}/world --out {}/out",)),
    "arm": Format(an_arm, "store/arm.json", ("exam {}/store@0 --world {}/world --set embedder=hash", "audit {}/store")),
    "experiment": Format(an_experiment, "exp/experiment.json", ("report {}/exp",)),
}


def called(*arguments: str) -> tuple[int, str]:
    """A verb in this process: its exit code and what it said; anything but an exit is the verb's fault."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            run(list(arguments))
        except SystemExit as stopped:
            return int(stopped.code or 0), said.getvalue()
    raise AssertionError("a verb always exits")


def contents(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture(scope="module", params=FORMATS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Format, Path]]:
    format: Format = FORMATS[request.param]
    good = tmp_path_factory.mktemp("good") / "place"
    good.mkdir()
    format.make(good)
    if not (good / "world").exists():
        world(good / "world")
    yield format, good


def check(format: Format, good: Path, data: bytes, verb: str) -> None:
    """One damaged file and one verb."""
    work = good.with_name("work")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(good, work)
    (work / format.file).write_bytes(data)
    before = contents(work)
    code, said = called(*verb.replace("{}", str(work)).split())
    assert code in (0, 1, 2)
    if code:
        error = said.removeprefix(f"{GENERAL_PLAY}\n")  # said of any text before anything is read
        assert error.startswith("kbgym: ") and error.count("\n") == 1, said
        assert len(said) < 1_100, said
        now = contents(work)
        assert {name: now.get(name) for name in before} == before, "a verb that failed changed what was there"


def fuzz(format: Format, good: Path, cases: int) -> None:
    data = (good / format.file).read_bytes()

    @settings(
        max_examples=cases, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(damaged(data, format.trace), st.sampled_from(format.verbs))
    def case(changed: bytes, verb: str) -> None:
        check(format, good, changed, verb)

    case()


def test_the_good_file_is_good(place: tuple[Format, Path]) -> None:
    """Otherwise every case would end at the same early error."""
    format, good = place
    codes = {verb: _code(format, good, verb) for verb in format.verbs}
    # Nobody of that name; nothing to report on yet; a question nobody was recorded answering.
    wrong = {"serve", "{}/exp", "--agent"}
    assert all(code == (2 if wrong & set(verb.split()) else 0) for verb, code in codes.items()), codes


def _code(format: Format, good: Path, verb: str) -> int:
    work = good.with_name("work")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(good, work)
    return called(*verb.replace("{}", str(work)).split())[0]


def test_a_few_cases(place: tuple[Format, Path]) -> None:
    fuzz(*place, 20)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_many_cases(place: tuple[Format, Path]) -> None:
    fuzz(*place, int(os.environ.get("KBGYM_FUZZ", "2000")) // len(FORMATS) + 1)
