"""A command as an agent: each pass is a fresh process that plays over MCP, without knowledge of other passes.

`episode.play` drives the pass: `act` answers the pending call with the last observation and returns the next call as an
action, so traces, grading and budgets are the same as for any agent. A process that exits or hangs before it ends its
pass has failed, and is not graded.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec

from kbgym.agents.external.command_line import USAGE_FROM, bridge_line, command_line, filled, surroundings
from kbgym.agents.external.process import AgentProcess
from kbgym.agents.external.usage import path_steps, usage_in
from kbgym.agents.live import OVER, CallQueue, PendingCall
from kbgym.agents.llm.client import Flawed
from kbgym.agents.llm.policy import action_of
from kbgym.agents.llm.prompting import Skill, shown_result, tail, told_of_pass
from kbgym.agents.llm.redact import Redactor
from kbgym.agents.llm.values import Usage
from kbgym.canonical import encode
from kbgym.errors import BadInput, Failed, Missing
from kbgym.gym.actions import Action, Answer, Done
from kbgym.gym.policy import AgentFailed, View
from kbgym.gym.tools import Role, Tool, tools_of
from kbgym.mcp import ToolResult, reply_to
from kbgym.sanitize import safe_text

KEPT = "passes.jsonl"  # output of the processes, beside the run's trace
_LAST_WORDS = 300


class CommandLimits(msgspec.Struct, frozen=True):
    """The limits of a pass: seconds in all, seconds to exit afterwards, invalid calls.

    `at_once` is the number of processes of an exam.
    """

    seconds: Annotated[float, msgspec.Meta(gt=0, lt=1_000_000)] = 600.0
    at_once: Annotated[int, msgspec.Meta(ge=1, lt=10_000)] = 8
    grace: float = 5.0
    flawed: int = 20

    @classmethod
    def from_environment(cls) -> CommandLimits:
        names = {"seconds": "KBGYM_PASS_SECONDS", "at_once": "KBGYM_PASSES"}
        given = {field: os.environ[name] for field, name in names.items() if name in os.environ}
        try:
            return msgspec.convert(given, cls, strict=False)
        except msgspec.ValidationError as error:
            raise BadInput(f"{' and '.join(names.values())} are numbers of seconds and processes: {error}.") from None


class PassRecord(msgspec.Struct, frozen=True):
    """One process, as kept beside a run; keys and the pass's token are removed from its output."""

    role: Role
    question: str
    ended: str
    exit: int | None
    seconds: float
    output: str


class CommandAgent:
    """Starts a process for every pass of one role."""

    def __init__(
        self, name: str, role: Role, skill: Skill, kept: Path | None = None, limits: CommandLimits | None = None
    ) -> None:
        """Create the agent; `kept` is the log file for output of its processes."""
        try:
            from kbgym.agents.external.http import PassServer
        except ImportError:
            raise Missing("a command as an agent needs aiohttp; run `pip install 'kbgym[models]'`.") from None
        self.name, self.role, self.skill, self.server = name, role, skill, PassServer
        self.line = command_line(name)
        self.limits = limits or CommandLimits.from_environment()
        self.at_once = self.line.at_once or self.limits.at_once
        told = os.environ.get(USAGE_FROM) or self.line.usage
        self.usage_from = path_steps(told) if told else None
        self.has_played = False  # True once one of its processes has called a tool
        self._kept = kept
        if shutil.which(program := self.line.arguments[0], path=surroundings(self.line, {}).get("PATH")) is None:
            raise BadInput(f"the agent's command cannot be started: there is no program {program!r}.")

    def __call__(self) -> CommandPolicy:
        return CommandPolicy(self)

    def keep(self, record: PassRecord) -> None:
        if self._kept is not None:
            with self._kept.open("ab") as file:
                file.write(encode(record) + b"\n")


class CommandPolicy:
    """One pass, played by one process, and the toolbox that the process is served."""

    instructions = "One pass over a store. Every result says how many actions are left."

    def __init__(self, agent: CommandAgent) -> None:
        self._agent = agent
        self._calls = CallQueue()
        self._flawed = 0
        self._over = False
        self.usage: Usage | None = None  # usage that the process reported at its end
        self._process: AgentProcess | None = None
        self._token = secrets.token_urlsafe(32)
        self._redact = Redactor([self._token])

    # -- the episode's side --------------------------------------------------------------------------------------------

    async def act(self, view: View) -> Action:
        try:
            if self._process is None:
                await self._begin(view)
            else:
                observation = view.history[-1].observation.text if view.history else ""
                self._calls.answer(shown_result(observation, view.remaining))
            action = await self._next(view)
        except BaseException as error:
            await self._end(view, str(error) if isinstance(error, AgentFailed) else type(error).__name__)
            raise
        if isinstance(action, Answer | Done):
            ended, said = "answered" if isinstance(action, Answer) else "done", "Submitted; the pass is over."
        elif view.remaining <= 1:
            ended, said = "out of budget", f"It is carried out, and was the last action: the pass is over.\n{tail(0)}"
        else:
            return action
        self._over = True
        self._calls.answer(said)
        await self._end(view, ended, self._agent.limits.grace)
        return action

    async def _next(self, view: View) -> Action:
        """Return the next call that is an action. Invalid calls are answered here and cost nothing, up to a bound."""
        while True:
            asked = await self._call()
            action = action_of(asked.name, asked.arguments, view.role)
            if not isinstance(action, Flawed):
                return action
            self._flawed += 1
            if self._flawed > self._agent.limits.flawed:
                raise AgentFailed(f"more than {self._agent.limits.flawed} calls were no action: {action.reason}")
            self._calls.answer(f"That was no action: {action.reason}\n{tail(view.remaining)}", True)

    async def _call(self) -> PendingCall:
        assert self._process is not None
        coming = asyncio.ensure_future(self._calls.take())
        over = asyncio.ensure_future(self._process.wait())
        try:
            first = asyncio.FIRST_COMPLETED
            left = self._deadline - asyncio.get_running_loop().time()
            await asyncio.wait({coming, over}, timeout=max(0.0, left), return_when=first)
            # A call may still arrive shortly after its process exited.
            await asyncio.wait({coming}, timeout=0.3 if over.done() else 0)
            if coming.done():
                return coming.result()
            if not over.done():
                raise AgentFailed(f"the command was still at it after {self._agent.limits.seconds:g} seconds.")
            code = await self._process.end()
            shown = f"signal {-code}" if code < 0 else f"exit code {code}"
            words = safe_text(" ".join(self._redact(self._process.output).split()))[-_LAST_WORDS:]
            said = f"; its last words: {words}" if words else "."
            ended = f"the command ended with {shown} before it had ended its pass{said}"
            if code > 0 and not self._agent.has_played:  # not logged in, an invalid flag, no credit
                raise Failed(f"{self._agent.name}: {ended}")
            raise AgentFailed(ended)
        finally:
            coming.cancel()
            over.cancel()

    async def _begin(self, view: View) -> None:
        agent, question = self._agent, view.task.question
        self._began = time.monotonic()
        self._deadline = asyncio.get_running_loop().time() + agent.limits.seconds
        self._process = process = AgentProcess()
        # The pass may be cancelled between two actions without the policy being told.
        self._playing = cast(asyncio.Task[None], asyncio.current_task())
        self._playing.add_done_callback(self._drop)
        self._server = agent.server(self._token, partial(reply_to, toolbox=self))
        url = await self._server.start()
        headers = {"Authorization": f"Bearer {self._token}"}
        servers = {"kbgym": {"type": "http", "url": url, "headers": headers}}
        values = {
            "prompt": (text := told_of_pass(view, agent.skill)),
            "prompt_file": process.written("prompt.md", text),
            "mcp_config": process.written("mcp.json", encode({"mcpServers": servers}).decode()),
            "mcp_url": url,
            "token": self._token,
            "question": question,
            "bridge": bridge_line(url, self._token),
        }
        for name, content in agent.line.files.items():
            process.written(f"work/{name}", filled(content, values, quoted=True))
        env = surroundings(agent.line, {"KBGYM_MCP_URL": url, "KBGYM_TOKEN": self._token})
        arguments = [filled(argument, values) for argument in agent.line.arguments]
        try:
            await process.start(arguments, env, values["prompt_file"] if agent.line.reads_prompt else None)
        except ValueError as error:  # a document of the store with a NUL byte
            raise AgentFailed(f"the command line cannot be given: {error}.") from error
        except OSError as error:
            raise BadInput(
                f"the agent's command cannot be started: {agent.line.arguments[0]}: {error.strerror}."
            ) from error

    def _drop(self, _: object) -> None:
        self._over = True
        self._server.abandon()
        cast(AgentProcess, self._process).remove()

    async def _end(self, view: View, ended: str, grace: float = 0.0) -> None:
        self._over = True
        if (process := self._process) is None:
            return
        self._playing.remove_done_callback(self._drop)
        code = await asyncio.shield(process.end(grace)) if process.started else None
        self._calls.clear()
        await asyncio.shield(self._server.close())
        output = self._redact(process.output)
        process.remove()
        if self._agent.usage_from is not None:
            self.usage = usage_in(output, self._agent.usage_from)
        seconds = round(time.monotonic() - self._began, 3)
        self._agent.keep(PassRecord(view.role, view.task.question, ended, code, seconds, output))

    # -- the process's side --------------------------------------------------------------------------------------------

    def tools(self) -> tuple[Tool, ...]:
        return tools_of(self._agent.role)

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        if self._over:
            return ToolResult(OVER, True)
        self._agent.has_played = True
        return await self._calls.put(name, arguments)
