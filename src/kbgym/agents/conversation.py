"""An agent that connects over MCP and plays every pass in one conversation.

Passes follow one another. `next_question` shows the next one; then the tools of its role play it. After a reader's pass
in training the curator's pass, with the expected answer, is the result of the call that ended the first. The client
remembers earlier questions, so its exams are marked as one conversation.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec

from kbgym.agents.human import HandAgent
from kbgym.agents.llm.prompting import Skill, shown_result, tail, told_of_pass
from kbgym.agents.llm.values import Call, Reply
from kbgym.gym.policy import View
from kbgym.gym.tools import Role, Tool, tools_of
from kbgym.mcp import ToolResult


class AskedCall(msgspec.Struct, eq=False):
    """A call and the future of its result."""

    name: str
    arguments: dict[str, Any]
    result: asyncio.Future[ToolResult]

    @classmethod
    def of(cls, name: str, arguments: dict[str, Any]) -> AskedCall:
        return cls(name, arguments, asyncio.get_running_loop().create_future())

    def answer(self, text: str, wrong: bool = False) -> None:
        if not self.result.done():
            self.result.set_result(ToolResult(text, wrong))


NEXT = Tool("next_question", dict, "The next question, with everything you need to know to answer it.", {})
_WAITING = 64  # concurrent calls
_OVER = "The pass is over; nothing more is done."


class Conversation:
    """The toolbox that the client is served, and the queue that the passes wait on."""

    def __init__(self, roles: tuple[Role, ...]) -> None:
        self.instructions = (
            "You are asked questions about a store of one-sentence documents, one after the other. Call next_question, "
            "then search and read, and answer; every result says how many actions are left. Go on until there is no "
            "question left."
        )
        tools = {tool.name: tool for role in roles for tool in tools_of(role)}
        self._tools = (NEXT, *tools.values())
        self._calls: asyncio.Queue[AskedCall] = asyncio.Queue()
        self._asked: AskedCall | None = None  # executed but not yet answered
        self._role: Role | None = None  # of the current pass
        self._task = ""  # of the current pass, until it is shown
        self._told: set[Role] = set()
        self._end = ""
        self._changed = asyncio.Event()  # set when there is a task, or at the end

    def agent(self, skill: Skill) -> HandAgent:
        return HandAgent(skill, lambda: _Pass(self))

    # -- used by the client --------------------------------------------------------------------------------------------

    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        shown = self.plays
        if name == NEXT.name:
            if shown:
                end = "answer" if self._role == "reader" else "done"
                return ToolResult(f"The question you have is not over; `{end}` ends it.", True)
            while not self._task and not self._end:
                self._changed.clear()
                await self._changed.wait()
            task, self._task = self._task, ""
            return ToolResult(self._end or task)
        if not shown or self._calls.qsize() >= _WAITING:
            return ToolResult("Too many calls at once." if shown else self._end or "Call next_question first.", True)
        self._calls.put_nowait(asked := AskedCall.of(name, arguments))
        return await asked.result

    # -- used by the passes --------------------------------------------------------------------------------------------

    def begin(self, view: View, skill: Skill) -> None:
        """Start a pass; the one before it is over."""
        task = told_of_pass(view, None if view.role in self._told else skill)
        self._told.add(view.role)
        follows = view.role == "curator" and self._asked is not None
        self._role, self._task = view.role, "" if follows else task
        self._leave(task if follows else "Call next_question.")

    def answer(self, text: str, wrong: bool = False) -> None:
        if self._asked is not None:
            self._asked.answer(text, wrong)

    async def next(self) -> AskedCall:
        self._asked = await self._calls.get()
        return self._asked

    @property
    def plays(self) -> bool:
        """Return True while a pass has been shown and is not finished."""
        return self._role is not None and not self._task

    def pause(self, said: str) -> None:
        """End the last pass while no other is ready."""
        self._role = None
        self._leave(said)

    def finish(self, said: str) -> None:
        """End the conversation: no pass will follow."""
        self._end = said
        self.pause(said)

    def _leave(self, said: str) -> None:
        """Answer the calls that the last pass left waiting."""
        if self._asked is not None:
            submitted = self._asked.name in ("answer", "done")
            over = "Submitted" if submitted else "It is carried out, and was the last action"
            self._asked.answer(f"{over}; the pass is over.\n\n{said}")
            self._asked = None
        while not self._calls.empty():
            self._calls.get_nowait().answer(_OVER, True)
        self._changed.set()


class _Pass:
    """One pass of the conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation, self._begun = conversation, False

    async def ask(self, view: View, skill: Skill, error: str) -> Reply:
        conversation = self._conversation
        if not self._begun:
            self._begun = True
            conversation.begin(view, skill)
        elif error:
            conversation.answer(f"That was no action: {error}\n{tail(view.remaining)}", True)
        else:
            conversation.answer(shown_result(view.history[-1].observation.text, view.remaining))
        asked = await conversation.next()
        return Reply(calls=(Call(asked.name, json.dumps(asked.arguments), "play"),))
