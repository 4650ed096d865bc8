"""Players who are there while they play: a person at the terminal, and a client over MCP in one conversation.

Both see exactly what a model would be sent and choose one call at a time; transcripts have the same form as any
agent's. In a conversation passes follow one another: `next_question` shows the next one, then the tools of its role
play it. After a reader's pass in training the curator's pass, with the expected answer, is the result of the call that
ended the first. The client remembers earlier questions, so its exams are marked as one conversation.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec

from kbgym.agents.llm.client import Flawed
from kbgym.agents.llm.policy import read
from kbgym.agents.llm.prompting import Skill, messages, shown_result, tail, told_of_pass
from kbgym.agents.llm.values import Call, Reply
from kbgym.errors import BadInput
from kbgym.gym.actions import Action
from kbgym.gym.policy import Agent, View
from kbgym.gym.tools import Role, Tool, tools_of
from kbgym.mcp import ToolResult

OVER = "The pass is over; nothing more is done."
_WAITING = 64  # concurrent calls


class LivePolicy:
    """One pass of a player, who is asked again until the reply is an action. Passes follow one another."""

    at_once = 1

    async def ask(self, view: View, error: str) -> Reply:
        """Show a view, or the error of the last reply, and return the next reply."""
        raise NotImplementedError

    async def act(self, view: View) -> Action:
        error = ""
        while True:
            action = read(await self.ask(view, error), view.role)
            if not isinstance(action, Flawed):
                return action
            error = action.reason


class AtTerminal(LivePolicy):
    """A person at the terminal."""

    async def ask(self, view: View, error: str) -> Reply:
        if error:
            print(f"That was no action: {error}")
        else:
            print("", messages(view)[-1].text, sep="\n")
        print(f"{tail(view.remaining)} Tools: {', '.join(tool.name for tool in tools_of(view.role))}")
        try:
            line = await asyncio.to_thread(input, 'tool {"argument": ...} > ')
        except EOFError:
            raise BadInput("standard input ended before the pass was over.") from None
        name, _, arguments = line.strip().partition(" ")
        return Reply(calls=(Call(name, arguments or "{}", "hand"),))


# -- over MCP ----------------------------------------------------------------------------------------------------------


class PendingCall(msgspec.Struct, eq=False):
    """A call and the future of its result."""

    name: str
    arguments: dict[str, Any]
    result: asyncio.Future[ToolResult]


class CallQueue:
    """Calls of a client: a toolbox puts them, a pass takes one at a time, and each gets one result."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[PendingCall] = asyncio.Queue()
        self.current: PendingCall | None = None  # taken and not followed by another

    async def put(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Add a call and return its result."""
        if self._waiting.qsize() >= _WAITING:
            return ToolResult("Too many calls at once; wait for a result.", True)
        call = PendingCall(name, arguments, asyncio.get_running_loop().create_future())
        self._waiting.put_nowait(call)
        return await call.result

    async def take(self) -> PendingCall:
        self.current = await self._waiting.get()
        return self.current

    def answer(self, text: str, wrong: bool = False) -> None:
        """Answer the call that was taken last, if it still waits."""
        if self.current is not None and not self.current.result.done():
            self.current.result.set_result(ToolResult(text, wrong))

    def clear(self) -> None:
        """Answer all waiting calls: the pass is over."""
        while not self._waiting.empty():
            self._waiting.get_nowait().result.set_result(ToolResult(OVER, True))
        self.current = None


NEXT = Tool("next_question", dict, "The next question, with everything you need to know to answer it.", {})


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
        self.calls = CallQueue()
        self._role: Role | None = None  # of the current pass
        self._task = ""  # of the current pass, until it is shown
        self._told: set[Role] = set()
        self._end = ""
        self._changed = asyncio.Event()  # set when there is a task, or at the end

    def agent(self, skill: Skill) -> Agent:
        class Playing(_InConversation):
            conversation, skill_shown = self, skill

        return Playing

    # -- used by the client --------------------------------------------------------------------------------------------

    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        if name != NEXT.name:
            if self.plays:
                return await self.calls.put(name, arguments)
            return ToolResult(self._end or "Call next_question first.", True)
        if self.plays:
            end = "answer" if self._role == "reader" else "done"
            return ToolResult(f"The question you have is not over; `{end}` ends it.", True)
        while not self._task and not self._end:
            self._changed.clear()
            await self._changed.wait()
        task, self._task = self._task, ""
        return ToolResult(self._end or task)

    # -- used by the passes --------------------------------------------------------------------------------------------

    def begin(self, view: View, skill: Skill) -> None:
        """Start a pass; the one before it is over."""
        task = told_of_pass(view, None if view.role in self._told else skill)
        self._told.add(view.role)
        follows = view.role == "curator" and self.calls.current is not None
        self._role, self._task = view.role, "" if follows else task
        self._leave(task if follows else "Call next_question.")

    @property
    def plays(self) -> bool:
        """Return True while a pass has been shown and is not finished."""
        return self._role is not None and not self._task

    def finish(self, said: str) -> None:
        """End the conversation: no pass will follow."""
        self._end, self._role = said, None
        self._leave(said)

    def _leave(self, said: str) -> None:
        """Answer the calls that the last pass left waiting."""
        if (last := self.calls.current) is not None:
            submitted = last.name in ("answer", "done")
            over = "Submitted" if submitted else "It is carried out, and was the last action"
            self.calls.answer(f"{over}; the pass is over.\n\n{said}")
        self.calls.clear()
        self._changed.set()


class _InConversation(LivePolicy):
    """One pass of a conversation."""

    conversation: Conversation
    skill_shown: Skill
    has_begun = False

    async def ask(self, view: View, error: str) -> Reply:
        calls = self.conversation.calls
        if not self.has_begun:
            self.has_begun = True
            self.conversation.begin(view, self.skill_shown)
        elif error:
            calls.answer(f"That was no action: {error}\n{tail(view.remaining)}", True)
        else:
            calls.answer(shown_result(view.history[-1].observation.text, view.remaining))
        asked = await calls.take()
        return Reply(calls=(Call(asked.name, json.dumps(asked.arguments), "play"),))
