"""The tools, prompts and resources of a served store over MCP, by role.

Listing them needs no store, so that a client is answered while the store is still being opened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kbgym.gym.tools import Role, Tool, tools_of
from kbgym.mcp import ToolResult

if TYPE_CHECKING:
    from kbgym.serving.learning.learner import Online
    from kbgym.serving.tool_calls import Caller
    from kbgym.trace.live import LiveStore

Opened = tuple["LiveStore", "Online | None", "Caller"]

INSTRUCTIONS = (
    "A store of one-sentence documents and links between them. Search it, and read what you find: reading an "
    "index shows everything it links to. An id stands in brackets before its document. `how_sure` tells what an answer "
    "rests on. If there is a tool `teach`, call it whenever a person corrects an answer: the store learns from it."
)
_ANSWER = {"type": "string", "description": "The answer alone: a name, a number, a word."}
HOW_SURE = Tool(
    "how_sure",
    dict,
    "Tell where the documents you opened recently come from: unchanged originals, or documents that agents wrote or "
    "changed, with their history. Without ids, all of them.",
    {"documents": {"type": "array", "items": {"type": "string"}, "maxItems": 14}},
    optional=("documents",),
)
# The tools of a curator beside those of a pass.
LESSONS = (
    Tool(
        "teach",
        dict,
        "Teach the store a correction by a person: the question, and every accepted answer to it.",
        {
            "question": {"type": "string", "description": "The question, complete in itself."},
            "answers": {"type": "array", "items": _ANSWER, "minItems": 1, "maxItems": 20},
            "answer": {
                "type": "string",
                "description": "The answer given before; by default the reader answers.",
            },
            "note": {"type": "string", "description": "The source of the correction; kept in the history."},
        },
        optional=("answer", "note"),
    ),
    Tool(
        "undo",
        dict,
        "Undo an iteration and everything since. The history is kept, and an undo can be undone.",
        {"iteration": {"type": "integer", "minimum": 1, "description": "The first iteration to undo."}},
    ),
)
_PROMPTS = {
    "answer": "How to find an answer in this store.",
    "curate": "How to keep this store in order.",
    "teach": "What to do when a person corrects an answer.",
}
STATISTICS, AGENDA, DOCUMENT = "kbgym://statistics", "kbgym://agenda", "kbgym://document/"
_TEACH = """\
# When a person corrects an answer

1. Find out the question, complete in itself, and every answer that would have been right.
2. Call `teach` with both, with the answer you gave, and with a note that names the person.
3. If the result is a lesson for you to work on, follow it with the tools for editing until `done`.
4. Tell the person what was learnt, and that `undo` with the iteration the result names reverses it.

Teach only what a person told you. What you found in the store yourself is not a correction.
"""


def tools_offered(role: Role, answering: bool, curates: bool = False) -> tuple[Tool, ...]:
    """Return a role's tools.

    Args:
        answering: the session was asked a question; it has the tool `answer`, and nothing beside the tools of a pass.
        curates: the client works on lessons itself; it has the tool `done`.
    """
    left_out = {"answer"} if not answering else set()
    tools = tuple(tool for tool in tools_of(role) if tool.name not in left_out and (tool.name != "done" or curates))
    if answering:
        return tools
    return (*tools, HOW_SURE, *(LESSONS if role == "curator" else ()))


def resources_offered(role: Role, answering: bool) -> dict[str, str]:
    """Return the URIs of a role's resources, with descriptions; one with braces is a template."""
    if answering:
        return {}
    resources = {
        STATISTICS: "Counts of documents and links.",
        DOCUMENT + "{id}": "A document and its links.",
    }
    return resources | ({AGENDA: "Indexes worth making, completing or checking."} if role == "curator" else {})


class StoreToolbox:
    """The toolbox of one caller; calls wait until the store is `opened`."""

    instructions = INSTRUCTIONS

    def __init__(self, role: Role, answering: bool, curates: bool, opened: Callable[[], Awaitable[Opened]]) -> None:
        self._role, self._answering, self._curates, self._opened = role, answering, curates, opened
        self.texts = self

    def tools(self) -> tuple[Tool, ...]:
        return tools_offered(self._role, self._answering, self._curates)

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        opened = await self._opened()
        from kbgym.serving.tool_calls import call_tool

        return await call_tool(*opened, name, arguments)

    def prompts(self) -> dict[str, str]:
        return {name: of for name, of in _PROMPTS.items() if self._role == "curator" or name == "answer"}

    def prompt(self, name: str) -> str | None:
        if name not in self.prompts():
            return None
        from kbgym.agents.llm.prompting import skill_of

        return _TEACH if name == "teach" else skill_of("reader" if name == "answer" else "curator").text

    def resources(self) -> dict[str, str]:
        return resources_offered(self._role, self._answering)

    async def resource(self, uri: str) -> str | None:
        opened = await self._opened()
        from kbgym.serving.tool_calls import read_resource

        return await read_resource(*opened, uri)
