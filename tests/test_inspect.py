"""Exams inside the real Inspect package: the rows of a log are those of `kbgym exam`."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from fault_server import FaultServer
from prompt_reader import Reference

import kbgym
from kbgym.agents.llm.prompting import call_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra inspect is not installed"),
]
N = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A small trained store with its probe groups."""
    folder = tmp_path_factory.mktemp("inspect") / "run"
    made = kbgym.train(kbgym.generate(people=60, seed=3), folder, questions=12, epochs=1, embedder="hash", eval=False)
    kbgym.probe_run(made.run, n=4)
    return folder


@pytest.fixture(scope="module")
def model():
    """The reference reader as a model provider that sees nothing but the messages of a request."""
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelAPI, ModelOutput, get_model, modelapi
    from inspect_ai.tool import ToolCall

    class Provider(ModelAPI):
        async def generate(self, input, tools, tool_choice, config):
            messages = [
                {
                    "role": one.role,
                    "content": one.text,
                    "tool_calls": [
                        {"function": {"name": call.function, "arguments": json.dumps(call.arguments)}}
                        for call in getattr(one, "tool_calls", None) or ()
                    ],
                }
                for one in input
            ]
            call = call_of(Reference()({"messages": messages}), f"call_{len(messages)}")
            said = ToolCall(id=call.id, function=call.name, arguments=json.loads(call.arguments))
            message = ChatMessageAssistant(content="", tool_calls=[said])
            return ModelOutput(model="reader", choices=[ChatCompletionChoice(message=message)])

    @modelapi(name="kbgym-reference")
    def provider():
        return Provider

    return get_model("kbgym-reference/reader")


def inspect(task, model, tmp_path):
    from inspect_ai import eval

    (log,) = eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none", limit=N)
    assert log.status == "success", log.error
    return log


@pytest.mark.parametrize("settings", [{}, {"observations": "rich", "forward_budget": 3}], ids=["usual", "rich"])
def test_the_reference_reader_gets_the_rows_of_an_exam(run, model, tmp_path, settings):
    from kbgym.integrations.inspect_tasks import exam, rows

    opened = kbgym.open(run, **settings)
    wanted = opened.examine("reference", opened.questions("test_in")[:N])
    told = {"budget" if name == "forward_budget" else name: value for name, value in settings.items()}
    log = inspect(exam(str(run), **told), model, tmp_path)
    found = rows(log.location)
    assert [msgspec.to_builtins(row) for row in found] == [msgspec.to_builtins(row) for row in wanted.rows]
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    for name in ("f1", "em", "actions", "characters"):
        assert means[name] == pytest.approx(getattr(wanted.summary, name)), name
    sample = log.samples[0]
    assert {"class", "template", "keys", "group"} <= sample.metadata.keys()


def test_the_gradient_has_a_mean_a_group(run, model, tmp_path):
    from inspect_ai import eval

    from kbgym.integrations.inspect_tasks import gradient

    (log,) = eval(gradient(str(run)), model=model, log_dir=str(tmp_path / "logs"), display="none")
    opened = kbgym.open(run)
    actions = next(score for score in log.results.scores if score.name == "actions").metrics
    for group in ("trained", "both", "one", "neither"):
        assert actions[f"grouped_{group}"].value == pytest.approx(opened.examine("reference", group).summary.actions)


def test_a_model_that_only_talks_has_no_score_and_one_that_cannot_stop_has_none_left(run, tmp_path):
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from kbgym.integrations.inspect_tasks import exam, rows

    def mock(output):
        output.usage = ModelUsage()  # else it is counted with an encoding that would have to be downloaded
        return get_model("mockllm/model", custom_outputs=lambda *_: output.model_copy(deep=True))

    talks = inspect(exam(str(run)), mock(ModelOutput.from_content("mockllm/model", "I think it is 4.")), tmp_path)
    assert {(row.outcome, row.f1, row.actions) for row in rows(talks.location)} == {("agent_failed", None, 0)}

    searches = ModelOutput.for_tool_call("mockllm/model", "search", {"query": "anything"})
    endless = inspect(exam(str(run), budget=5), mock(searches), tmp_path)
    assert {(row.outcome, row.f1, row.actions) for row in rows(endless.location)} == {("out_of_budget", 0.0, 5)}


def documented(task: str, tmp_path: Path, *more: str, **places: Path) -> None:
    """Run the page's own command against a server that plays the reference agents."""
    page = (Path(__file__).parent.parent / "docs" / "research.md").read_text(encoding="utf-8")
    command = re.findall(rf"^\$ (inspect eval kbgym/{task} .*)$", page, re.MULTILINE)[0]
    for written, place in places.items():
        command = command.replace(written.replace("_", "/"), str(place))
    with FaultServer() as server:
        command = command.replace("http://127.0.0.1:8080/v1", server.url)
        words = [Path(sys.executable).with_name("inspect"), *shlex.split(command)[1:], "--log-dir", tmp_path]
        environment = {**os.environ, "LOCAL_API_KEY": "none"}
        done = subprocess.run([*words, *more, "--display", "plain"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_documented_command_plays_a_server_and_comes_to_the_same_rows(run, tmp_path):
    from kbgym.integrations.inspect_tasks import rows

    documented("exam", tmp_path, runs_r7=run)
    (log,) = tmp_path.glob("*.eval")
    opened = kbgym.open(run)
    assert rows(log) == opened.examine("reference", opened.questions("test_in")[:4]).rows
