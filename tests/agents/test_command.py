"""Agents that are programs: the same passes as in process, and no way for a bad one to be scored or to stay."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from family import documents, family
from processes import gone
from turns import turn

from kbgym.agents.external.agent import CommandAgent, CommandLimits
from kbgym.agents.external.command_line import READY, command_line, filled
from kbgym.agents.llm.prompting import skill_of, told_of_pass
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.agents.registry import make_agent
from kbgym.agents.trust import allowed
from kbgym.cli.main import run
from kbgym.errors import BadInput, Failed
from kbgym.gym.actions import Search
from kbgym.gym.environment import Environment, Step
from kbgym.gym.episode import Transcript, play
from kbgym.gym.policy import Agent, Forward, View
from kbgym.search.embed import HashEmbedder
from kbgym.search.engine import Engine
from kbgym.store import Store, source
from kbgym.trace.events import Began, Ended, Graded
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import examine
from kbgym.training.run import Run, Settings
from kbgym.worlds.people import generate
from kbgym.worlds.world import Question

PROGRAM = Path(__file__).parents[1] / "command_agent.py"
QUESTIONS = (
    ("What is the job of Ada Alm?", "baker"),
    ("Who is the baker who lives in the city of Lund?", "Ada Alm"),
    ("In which city does Cy Alm live?", "Oslo"),
    ("Who is the hatter who lives in the city of Oslo?", "Hal Ost"),
)
FEW = CommandLimits(seconds=60, flawed=5)


def line(how: str = "plain") -> str:
    python, program = shlex.quote(sys.executable), shlex.quote(str(PROGRAM))
    return f"command:{python} {program} {{prompt_file}} {{mcp_url}} {{token}} {how}"


def agent(how: str, kept: Path | None = None, limits: CommandLimits = FEW) -> CommandAgent:
    return CommandAgent(line(how), "reader", skill_of("reader"), kept, limits)


def store_of_family() -> tuple[Store, Engine]:
    store = Store([source(id, f"{text}.") for text, id in documents(family()).items()])
    engine = Engine(HashEmbedder())
    engine.load((record.id, record.text) for record in store)
    return store, engine


def questions(n: int = len(QUESTIONS)) -> list[Question]:
    rows = [QUESTIONS[number % len(QUESTIONS)] for number in range(n)]
    return [
        Question(id=f"q{n}", split="test_in", class_="QC1", template="t", text=text, golds=(gold,))
        for n, (text, gold) in enumerate(rows)
    ]


def exam_of(reader: Agent, asked: Sequence[Question], out: Path) -> bytes:
    store, engine = store_of_family()
    asyncio.run(asyncio.wait_for(examine(store, engine, asked, reader, out), 200))
    return out.read_bytes()


def one_pass(reader: Agent, budget: int = 6) -> Transcript:
    task = Forward(QUESTIONS[1][0])
    return asyncio.run(asyncio.wait_for(play(reader(), Environment(*store_of_family()), "reader", task, budget), 100))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


# -- the same as in process --------------------------------------------------------------------------------------------


def test_an_exam_by_processes_is_the_exam_in_process_to_the_byte(tmp_path: Path) -> None:
    here = exam_of(ReferenceReader, questions(), tmp_path / "here.jsonl")
    there = exam_of(agent("plain", tmp_path / "kept.jsonl"), questions(), tmp_path / "there.jsonl")
    assert there == here and b'"outcome":"answered"' in here
    kept = [json.loads(row) for row in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert [(row["ended"], row["exit"], row["output"]) for row in kept] == [("answered", 0, "played\n")] * 4


@pytest.mark.slow
@pytest.mark.parametrize("how", ["official", "bridge"])
def test_through_the_official_client_eight_at_once(tmp_path: Path, how: str) -> None:
    here = exam_of(ReferenceReader, questions(8), tmp_path / "here.jsonl")
    assert exam_of(agent(how, limits=CommandLimits(seconds=120)), questions(8), tmp_path / "there.jsonl") == here


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "official"])
def test_training_by_processes_leaves_the_trace_of_training_in_process(tmp_path: Path, how: str) -> None:
    generate(people=40, seed=3).save(tmp_path / "world")
    traces = {}
    for name, who in (("here", "reference"), ("there", line(how))):
        flags = f"--questions 3 --epochs 1 --set eval=false --set embedder=hash --quiet --agent {who!r}"
        with pytest.raises(SystemExit) as stopped:
            run(["train", "--world", str(tmp_path / "world"), "--out", str(tmp_path / name), *shlex.split(flags)])
        assert not stopped.value.code
        events = [msgspec.to_builtins(event) for event in StoreFolder(tmp_path / name).events]
        traces[name] = [{k: v for k, v in event.items() if k not in ("agent", "settings")} for event in events]
    assert traces["there"] == traces["here"] and len(traces["here"]) > 20
    kept = (tmp_path / "there" / "passes.jsonl").read_text().splitlines()
    assert [json.loads(row)["role"] for row in kept] == ["reader", "curator"] * 3


@pytest.mark.slow
def test_killed_at_random_moments_no_pass_is_scored_wrong(tmp_path: Path) -> None:
    asked, store = questions(12), store_of_family()
    right = asyncio.run(examine(*store, asked, ReferenceReader))
    rows = asyncio.run(examine(*store, asked, agent("dies")))
    failed = [row for row in rows if row.outcome == "agent_failed"]
    assert failed and all(row.f1 is None and "signal 9" in (row.failure or "") for row in failed)
    assert all(row == other for row, other in zip(rows, right, strict=True) if row.outcome != "agent_failed")


@pytest.mark.slow
def test_a_training_whose_processes_are_killed_scores_none_of_them(tmp_path: Path) -> None:
    generate(people=40, seed=3).save(tmp_path / "world")
    grades: dict[str, dict[str, float]] = {}
    for name, who in (("here", "reference"), ("there", line("dies"))):
        flags = f"--questions 6 --epochs 1 --set eval=false --set embedder=hash --quiet --agent {who!r}"
        with pytest.raises(SystemExit) as stopped:
            run(["train", "--world", str(tmp_path / "world"), "--out", str(tmp_path / name), *shlex.split(flags)])
        assert not stopped.value.code
        events = StoreFolder(tmp_path / name).events
        ended = [event.outcome for event in events if isinstance(event, Ended)]
        asked = {event.iteration: event.question for event in events if isinstance(event, Began)}
        grades[name] = {asked[event.iteration]: event.f1 for event in events if isinstance(event, Graded)}
    assert "agent_failed" in ended and len(grades["there"]) < 6, "nobody was killed"
    assert grades["there"].items() <= grades["here"].items()


def test_what_a_program_says_it_used_is_counted_and_else_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    generate(people=24, seed=3).save(tmp_path / "world")
    monkeypatch.setenv("KBGYM_PASS_ENV", "PLAYER_SAYS")
    monkeypatch.setenv("PLAYER_SAYS", '{"spent": {"input_tokens": 20, "output_tokens": 3, "cost": 0.5}}')
    monkeypatch.setenv("KBGYM_USAGE_FROM", "")  # the flag sets it for the process
    few = tmp_path / "few.jsonl"
    few.write_text("".join((tmp_path / "world" / "questions.jsonl").open().readlines()[:2]))
    told = {}
    for name, flags in (("known", ["--set", "usage_from=$.spent"]), ("unknown", [])):
        monkeypatch.setenv("KBGYM_USAGE_FROM", "")
        asked = [
            "exam",
            str(tmp_path / "world"),
            "--set",
            str(few),
            "--agent",
            line(),
            "--set",
            "embedder=hash",
            "--json",
        ]
        with pytest.raises(SystemExit) as stopped:
            run([*asked, "--out", str(tmp_path / f"{name}.jsonl"), *flags])
        assert not stopped.value.code
        told[name] = json.loads(capfd.readouterr().out)["used"]
    assert told == {"known": {"prompt": 40, "completion": 6, "cost": 1.0, "passes": 2}, "unknown": None}
    rows = [json.loads(row) for row in (tmp_path / "known.jsonl").read_text().splitlines()]
    assert [row["usage"]["prompt"] for row in rows] == [20, 20]
    assert b'"usage"' not in (tmp_path / "unknown.jsonl").read_bytes()


# -- what is told, and what can be seen --------------------------------------------------------------------------------


def test_a_process_sees_what_it_is_handed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-mine")
    monkeypatch.setenv("KBGYM_LOCAL_API_KEY", "another-secret")
    assert one_pass(agent("look")).answer == "seen"
    seen = json.loads((home / "seen.json").read_text())
    assert {"KBGYM_MCP_URL", "KBGYM_TOKEN"} <= set(seen["env"])
    assert not {"OPENAI_API_KEY", "KBGYM_LOCAL_API_KEY", "KBGYM_CONFIG", "PYTHONPATH"} & set(seen["env"])
    assert seen["cwd"] == [] and seen["other"] == 401 and seen["path"] == 404
    assert seen["tools"] == ["search", "read", "answer"]
    assert "over" in seen["after"]


def test_the_prompt_holds_the_task_and_what_was_done_before() -> None:
    view = View("reader", Forward("Who?"), (turn(Search("who"), "[d1] Ada."),), 14)
    text = told_of_pass(view, skill_of("reader"))
    assert text.startswith("# Finding answers") and text.endswith("Actions left: 14.")
    assert "Question: Who?" in text and '1. search {"page":1,"query":"who"}\n<observation>\n[d1] Ada.' in text


def test_placeholders_are_replaced_once_and_inside_their_argument() -> None:
    values = {"question": "a b; rm {token} $HOME", "token": "T"}
    made = [filled(one, values) for one in command_line("command:agent --ask '{question} or not' {token}").arguments]
    assert made == ["agent", "--ask", "a b; rm {token} $HOME or not", "T"]
    assert command_line("command:agent").reads_prompt and not command_line("command:agent {prompt}").reads_prompt
    assert all(ready.reads_prompt for ready in READY.values())
    assert command_line("command:codex") == READY["codex"] and len(command_line("command:codex exec").arguments) == 2
    for ready in READY.values():
        for name, text in ready.files.items():
            values = {"mcp_url": 'http://"', "token": "T\\"}
            assert json.loads(filled(text, values, quoted=True)), name


@pytest.mark.parametrize("name", ["command:", "command:'", "command:/no/such/program {prompt}"])
def test_a_command_that_cannot_be_one_is_refused_at_once(name: str) -> None:
    with pytest.raises(BadInput):
        make_agent(name, "reader")


def test_doctor_says_whether_it_plays_and_that_its_price_is_not_known(capfd: pytest.CaptureFixture[str]) -> None:
    for who, code in ((line(), 0), ("command:false", 1)):
        with pytest.raises(SystemExit) as stopped:
            run(["doctor", "--agent", who, "--json"])
        found = json.loads(capfd.readouterr().out)
        assert stopped.value.code == code and found["ok"] is (code == 0)
        assert found["price"]["exam_100"] is None


def test_a_run_that_names_a_command_is_not_served_unless_trusted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    world, mark = generate(people=24, seed=3), tmp_path / "mark"
    Run.open_or_create(tmp_path / "run", world, Settings(reader=f"command:touch {mark}", embedder="hash"))
    (tmp_path / "t.jsonl").write_text('{"question": "Who?", "answers": ["Ada"]}\n')
    with pytest.raises(SystemExit) as stopped:
        run(["learn", str(tmp_path / "run"), "--traffic", str(tmp_path / "t.jsonl"), "--set", "embedder=hash"])
    assert stopped.value.code == 2 and f"would run the command 'touch {mark}'" in capfd.readouterr().err
    assert not mark.exists()


def test_a_folders_command_is_not_run_unless_trusted(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="would run the command 'rm -rf x'"):
        allowed(str(tmp_path), ["command:rm -rf x"])
    with pytest.raises(BadInput, match="would run the command 'codex'"):
        make_agent("codex", "reader", trusted=())


# -- bad ones ----------------------------------------------------------------------------------------------------------


def test_one_that_cannot_start_stops_the_run(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(BadInput, match="cannot be started"):
        exam_of(make_agent(f"command:{broken}", "reader"), questions(), tmp_path / "rows.jsonl")
    logged_out = f"command:{sys.executable} -c 'import sys; sys.exit(\"please log in\")'"
    with pytest.raises(Failed, match="please log in"):
        exam_of(make_agent(logged_out, "reader"), questions(), tmp_path / "rows.jsonl")
    with pytest.raises(Failed, match="no credit left"):
        exam_of(agent("no_credit"), questions(), tmp_path / "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_bytes() == b""


def test_one_that_is_no_player_has_failed(tmp_path: Path) -> None:
    made = one_pass(make_agent(f"command:{sys.executable} -c 'print(\"The answer is 42\")'", "reader"))
    assert made.outcome == "agent_failed" and "exit code 0" in (made.failure or "")
    assert "The answer is 42" in (made.failure or "")


def test_output_is_bounded_and_has_no_token(tmp_path: Path) -> None:
    made = one_pass(agent("noise", tmp_path / "kept.jsonl"))
    assert made.outcome == "agent_failed" and "I give up" in (made.failure or "") and len(made.steps) == 1
    row = json.loads((tmp_path / "kept.jsonl").read_text())
    assert len(row["output"]) < 70_000 and "my token is [key]" in row["output"]


def test_one_that_never_plays_ends_bounded() -> None:
    made = one_pass(agent("wrong_tools"))
    assert made.outcome == "agent_failed" and "5 calls were no action" in (made.failure or "") and not made.steps


def test_huge_arguments_cost_actions_and_nothing_else() -> None:
    made = one_pass(agent("huge"))
    assert made.outcome == "out_of_budget" and made.characters < 2_000


@pytest.mark.slow
def test_one_that_hangs_is_ended(home: Path) -> None:
    made = one_pass(agent("hang", limits=CommandLimits(seconds=4)))
    assert made.outcome == "agent_failed" and "still at it after 4 seconds" in (made.failure or "")
    assert gone(int((home / "hangs.pid").read_text()))


def test_children_end_with_their_parent(home: Path) -> None:
    assert one_pass(agent("fork")).answer == "forked"
    assert gone(int((home / "child.pid").read_text()))


def test_a_pass_that_is_dropped_between_two_actions_leaves_no_process(home: Path) -> None:
    class Stuck:
        require_visible_ids = False

        async def carry_out(self, *_: object) -> Step:
            await asyncio.sleep(600)
            raise AssertionError

    async def work() -> None:
        task = asyncio.create_task(play(agent("waits")(), Stuck(), "reader", Forward("Who?"), 5))
        while not (home / "waits.pid").exists():
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert await asyncio.to_thread(gone, int((home / "waits.pid").read_text()))

    asyncio.run(asyncio.wait_for(work(), 60))


def test_an_abandoned_pass_leaves_no_process(home: Path) -> None:
    async def work() -> None:
        policy = agent("hang")()
        acting = asyncio.create_task(policy.act(View("reader", Forward("Who?"), (), 5)))
        while not (home / "hangs.pid").exists():
            await asyncio.sleep(0.02)
        acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting

    asyncio.run(asyncio.wait_for(work(), 60))
    assert gone(int((home / "hangs.pid").read_text()))
