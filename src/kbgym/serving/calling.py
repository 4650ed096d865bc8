"""A call of a tool on a served store, whichever protocol carries it: who calls, and what it comes to."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from kbgym.errors import Failed
from kbgym.gym.actions import Error, Invalid, Read, Search
from kbgym.gym.tools import Role, Tool, parse
from kbgym.mcp import ToolResult
from kbgym.sanitize import safe_text
from kbgym.serving.acting import act
from kbgym.serving.caller_lessons import CallerCurator
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.open_questions import Refusal
from kbgym.serving.lessons import teach, undo
from kbgym.serving.mcp_offer import tools_offered
from kbgym.serving.provenance import how_sure
from kbgym.serving.sessions import ClientSession
from kbgym.trace.live import LiveStore


class Caller(msgspec.Struct, frozen=True):
    """Who calls: the role decides the tools, the session what a conflict is; `question` is the one being answered.

    `curates` where the caller works on lessons itself.
    """

    role: Role
    session: ClientSession
    question: str | None = None
    curates: CallerCurator | None = None

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tools_offered(self.role, self.question is not None, self.curates is not None)


async def call_tool(
    live: LiveStore, online: Online | None, caller: Caller, name: str, arguments: dict[str, Any]
) -> ToolResult:
    """What a call comes to; whatever is wrong with it is a sentence that begins with Error. Questions need `online`."""
    listed = [tool.name for tool in caller.tools]
    if name not in listed:
        return _wrong(f"there is no tool {name[:40]!r} here; the tools are {', '.join(listed)}.")
    try:
        if name == "how_sure":
            return ToolResult(await how_sure(live, caller.session, caller.role, arguments))
        if online is not None and name == "teach":
            return ToolResult(await teach(online, caller.session, arguments, caller.curates))
        if online is not None and name == "undo":
            return ToolResult(await undo(online, caller.session, arguments))
        if online is not None and caller.curates is not None and (caller.curates.plays or name == "done"):
            return await caller.curates.call(online, name, arguments)
        action = parse(name, arguments, caller.role)
        if isinstance(action, Invalid):
            return _wrong(action.reason)
        if online is not None and caller.question is not None:
            if name == "answer":
                await online.close(caller.question, caller.session.client, str(arguments["text"]))
                return ToolResult("Answer submitted.")
            step = await online.act(caller.question, caller.session.client, action)
            return ToolResult(step.observation.text, isinstance(step.result, Error))
        reply = await act(live, caller.session, action, caller.role)
        if isinstance(action, Search | Read):
            caller.session.looked.append(action)
    except Refusal as refusal:
        return _wrong(str(refusal))
    except Failed as failure:
        return _wrong(unfinished(failure))
    return ToolResult(reply.step.observation.text, isinstance(reply.step.result, Error))


def unfinished(failure: Failed) -> str:
    """What a client is told of a failure; the reason names files and machines, and goes to the log."""
    logging.getLogger("kbgym").error("%s", safe_text(str(failure)))
    return "this could not be finished and nothing was changed; the server's log says why."


def _wrong(reason: str) -> ToolResult:
    return ToolResult(f"Error: {reason}", True)
