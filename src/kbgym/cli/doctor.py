"""`kbgym doctor`: checks of an installation, or of an agent, its latency and its price.

An agent plays ten short passes over a small store. The correctness of answers is shown but decides nothing: the check
is about the path to the agent.
"""

from __future__ import annotations

import asyncio
import platform
import re
import statistics
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import msgspec

from kbgym import __version__
from kbgym.agents.external.command_line import is_command
from kbgym.agents.llm.client import ModelClient, Provider
from kbgym.agents.llm.connect import Models, Options, is_model
from kbgym.agents.llm.policy import LLMAgent, LLMJudge
from kbgym.agents.llm.prices import Prices, forecast
from kbgym.agents.llm.retry import Retry
from kbgym.agents.llm.values import Reply, Request, Usage
from kbgym.agents.registry import make_agent
from kbgym.cli import read_table
from kbgym.cli.common import Printed, emit, progress, verb
from kbgym.cli.settings import options
from kbgym.cli.spending import used_by_commands
from kbgym.errors import Failed, KbgymError, Missing
from kbgym.gym.environment import Environment
from kbgym.gym.episode import Transcript, play
from kbgym.gym.grading import grade
from kbgym.gym.policy import Agent, Backward, Forward, Task
from kbgym.gym.tools import Role
from kbgym.progress import ProgressCallback
from kbgym.search.cache import cache_folder
from kbgym.search.embed import HashEmbedder
from kbgym.search.engine import Engine
from kbgym.search.models import MINILM, find
from kbgym.store import Record, Store, source

BUDGET = 8
# With more malformed replies or failed passes than this, a run would mostly measure the agent's mistakes.
WORST_RATE, WORST_FAILED = 0.25, 2


@verb("doctor")
@options("agent", help="The agent to check.  [default: check this installation]")
@options("judge", "base_url", "max_cost")
@options("concurrency", default=2)
@options("timeout", default=120.0)
@options("max_tokens", default=400_000)
def command(agent: str | None, judge: str | None, **given: Any) -> None:
    """Check this installation, or an agent: endpoint, key, ten short passes, malformed calls, latency, price, judge.

    \b
    Examples:
      kbgym doctor
      kbgym doctor --agent llm:openai/gpt-5-mini-2025-08-07
      kbgym doctor --agent llm:local/qwen3 --set base_url=http://127.0.0.1:8080/v1
    """
    if agent is None:
        found, lines = check_installation()
        emit(found, lines)
        if not found["ok"]:
            raise Failed("the embedding model is missing.")
        return
    result = asyncio.run(examine_agent(agent, judge, Options(**given)))
    emit(result, _screen(result))
    if not result["ok"]:
        failed = ", ".join(check.name for check in result["checks"] if check.needed and not check.ok)
        raise Failed(f"{agent} cannot play: {failed}.")


# -- the installation -------------------------------------------------------------------------------------------------


def check_installation() -> Printed:
    """Return the findings and the lines to print. `ok` is False if the embedding model is missing."""
    lines = [f"kbgym {__version__}, Python {platform.python_version()}"]
    try:
        model: str | None = str(find(MINILM, cache_folder()))
        lines.append(f"  ok      embedding model {MINILM.name} in {model}")
    except Missing as error:
        model = None
        lines.append(f"  MISSING {error} Or: pip install 'kbgym[model]', which downloads it at first use.")
    purposes: dict[str, str] = _data()["extras"]
    extras = {name: missing_packages(name) for name in purposes}
    for name, missing in extras.items():
        fix = f". Run: pip install 'kbgym[{name}]'  (missing: {', '.join(missing)})" if missing else ""
        lines.append(f"  {'no' if missing else 'ok':7} {name}: {purposes[name]}{fix}")
    lines.append("Check an agent: kbgym doctor --agent llm:PROVIDER/MODEL")
    return {"ok": model is not None, "version": __version__, "model": model, "extras": extras}, lines


def missing_packages(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed."""
    missing: list[str] = []
    for requirement in requires("kbgym") or []:
        if not re.search(rf"extra == ['\"]{extra}['\"]", requirement):
            continue
        name, brackets = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement).groups()  # type: ignore[union-attr]
        if name == "kbgym":
            missing += [one for inner in brackets.split(",") for one in missing_packages(inner)]
            continue
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    return missing


# -- an agent ---------------------------------------------------------------------------------------------------------


class DoctorCheck(msgspec.Struct, frozen=True):
    """The result of one check. Only a `needed` check decides whether the agent can play."""

    name: str
    ok: bool
    detail: str
    needed: bool = True


class Timed:
    """A provider that records the duration of each request."""

    def __init__(self, provider: Provider, seconds: list[float]) -> None:
        self.where = provider.where
        self._provider, self._seconds = provider, seconds

    async def send(self, request: Request) -> Reply:
        began = time.perf_counter()
        try:
            return await self._provider.send(request)
        finally:
            self._seconds.append(time.perf_counter() - began)


async def examine_agent(name: str, judge: str | None, options: Options) -> dict[str, Any]:
    """Check an agent and return the findings as `--json` prints them."""
    checks: list[DoctorCheck] = []
    passes: list[Transcript] = []
    client: ModelClient | None = None
    seconds = list[float]()
    # Enough for a short failure; a model that needs more tries is too slow to run.
    models = Models(options, Retry(attempts=6, total=120.0))
    try:
        reader = make_agent(name, "reader", models)
        curator = make_agent(name, "curator", models)
        if isinstance(reader, LLMAgent):
            client = reader.client
            if client.provider is not None:
                client.provider = Timed(client.provider, seconds)
        with progress("doctor") as tick:
            passes = await _episodes(reader, curator, tick)
        if client is not None and client.provider is not None:
            checks.append(DoctorCheck("reached", True, client.provider.where))
        checks.append(_played(passes))
        if client is not None:
            checks.append(_well_formed(client.usage))
            checks.append(await _judged(models, judge or name, needed=judge is not None))
    except KbgymError as error:
        checks.append(DoctorCheck("reached", False, str(error)))
    finally:
        await models.close()
    median = statistics.median(seconds or [0.0])
    usage, prices = (client.usage, client.prices) if client is not None else (Usage(), Prices("local", name))
    return {
        "ok": all(check.ok for check in checks if check.needed),
        "agent": name,
        "malformed_rate": round(usage.malformed_rate, 4),
        "latency": {"median": round(median, 4), "worst": round(max(seconds, default=0.0), 4), "requests": len(seconds)},
        "price": _price(prices, models.budget.spent, name, passes),
        "checks": checks,
        "usage": msgspec.to_builtins(usage),
    }


@cache
def _data() -> dict[str, Any]:
    return read_table("doctor.toml")


def small_store() -> Store:
    documents = [source(f"d{number}", text) for number, text in enumerate(_data()["documents"].splitlines())]
    people = tuple(document.id for document in documents if document.text.endswith("lives in the city of Velden."))
    return Store([*documents, Record("i0", "People who live in the city of Velden.", people, flag="authored")])


async def _episodes(reader: Agent, curator: Agent, tick: ProgressCallback) -> list[Transcript]:
    """Play the readers concurrently, then a curator after some of them, each on its own store."""
    asked, done = _data()["questions"], 0
    curated = [number for number, one in enumerate(asked) if one.get("curated")]

    async def one(agent: Agent, role: Role, task: Task) -> Transcript:
        nonlocal done
        store, engine = small_store(), Engine(HashEmbedder())
        engine.load((record.id, record.text) for record in store)
        transcript = await play(agent(), Environment(store, engine), role, task, BUDGET)
        done += 1
        tick(done, len(asked) + len(curated), "")
        return transcript

    forward = list(await asyncio.gather(*(one(reader, "reader", Forward(each["text"])) for each in asked)))
    tasks = []
    for number in curated:
        text, gold, read = asked[number]["text"], asked[number]["answer"], forward[number]
        tasks.append(Backward(text, read.turns, (gold,), *_graded(read, gold)))
    return [*forward, *await asyncio.gather(*(one(curator, "curator", task) for task in tasks))]


def _graded(forward: Transcript, gold: str) -> tuple[float, Any]:
    if forward.answer is None:
        return 0.0, "out of budget"
    f1, _ = grade(forward.answer, (gold,), gold == "unknown")
    return f1, "right" if f1 == 1.0 else "wrong"


def _played(passes: list[Transcript]) -> DoctorCheck:
    failures = [transcript.failure for transcript in passes if transcript.outcome == "agent_failed"]
    asked = _data()["questions"]
    right = sum(_graded(read, one["answer"])[0] == 1.0 for read, one in zip(passes, asked, strict=False))
    detail = f"{len(passes) - len(failures)} of {len(passes)} played to their end, {right} of {len(asked)} right"
    return DoctorCheck("passes", len(failures) <= WORST_FAILED, f"{detail}; {failures[0]}" if failures else detail)


def _well_formed(usage: Usage) -> DoctorCheck:
    ways = ", ".join(dict.fromkeys(sent.way for sent in usage.sent))
    refused = ", ".join(dict.fromkeys(name for sent in usage.sent for name in sent.refused))
    detail = f"{usage.malformed} of {usage.requests} replies malformed (asked for by {ways or 'nothing'}"
    detail += f"; refused settings: {refused})" if refused else ")"
    return DoctorCheck("tool calls", usage.malformed_rate <= WORST_RATE, detail)


async def _judged(models: Models, name: str, needed: bool) -> DoctorCheck:
    try:
        await LLMJudge(models, name).self_test()
    except KbgymError as error:
        return DoctorCheck("judge", False, str(error), needed)
    return DoctorCheck("judge", True, "tells a duplicate from a difference", needed)


def _price(prices: Prices, spent: Usage, name: str, passes: list[Transcript]) -> dict[str, Any]:
    if is_command(name):
        used = used_by_commands([name], [one.usage for one in passes])[0]["used"]
        unknown = {"spent": None, "exam_100": None, "train_100": None}
        if used is None:
            return {**unknown, "tokens": 0, "basis": "the program keeps its own account"}
        tokens = used["prompt"] + used["completion"]
        return {**unknown, "spent": used["cost"], "tokens": tokens, "basis": "as the program says"}
    if not is_model(name):
        return {"spent": 0.0, "tokens": spent.tokens, "exam_100": 0.0, "train_100": 0.0, "basis": "no model"}
    exam, train = forecast(prices, {"exam": 100}), forecast(prices, {"forward": 100, "backward": 100})
    costs = {"spent": spent.cost, "exam_100": exam.cost, "train_100": train.cost}
    return {**costs, "tokens": spent.tokens, "basis": f"{exam.basis}; {prices.table}"}


def _screen(result: dict[str, Any]) -> str:
    def money(value: float | None) -> str:
        return "unknown" if value is None else f"${value:,.4f}" if value < 1 else f"${value:,.2f}"

    price, latency = result["price"], result["latency"]
    lines = [f"{result['agent']}: {'can play' if result['ok'] else 'cannot play'}"]
    for check in result["checks"]:
        mark = "ok  " if check.ok else "FAIL" if check.needed else "note"
        lines.append(f"  {mark} {check.name}: {check.detail}")
    if latency["requests"]:
        lines.append(f"  latency: median {latency['median']:.2f} s, worst {latency['worst']:.2f} s a request")
    lines.append(
        f"  price: this check {money(price['spent'])} ({price['tokens']:,} tokens); 100 exam questions about "
        f"{money(price['exam_100'])}, 100 training questions about {money(price['train_100'])} ({price['basis']})"
    )
    return "\n".join(lines)
