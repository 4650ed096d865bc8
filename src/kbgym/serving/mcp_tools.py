"""The tools of a served store over MCP, by role.

Listing them needs no store, so that a client is answered while the store is still being opened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kbgym.gym.tools import Role, Tool, tools_of
from kbgym.mcp import ToolResult

if TYPE_CHECKING:
    from kbgym.serving.actions import Results
    from kbgym.serving.learning.learner import Online
    from kbgym.serving.tool_calls import Caller

Opened = tuple["Results", "Online | None", "Caller"]

INSTRUCTIONS = (
    "A store of documents and links between them. Search it, and read what you find: reading an index shows everything "
    "it links to. An id stands in brackets before its document. Prefer a correction to what it supersedes, and cite "
    "the page or file of what you use. `how_sure` tells what an answer rests on. If there is a tool `teach`, call it "
    "whenever a person corrects an answer: the store learns from it."
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
        "Teach the store a correction by a person: the question and every accepted answer. Documents that state the "
        "answer are linked from the question's words; if there are none, a correction supersedes the wrong ones.",
        {
            "question": {"type": "string", "description": "The question, complete in itself."},
            "answers": {"type": "array", "items": _ANSWER, "minItems": 1, "maxItems": 20},
            "answer": {
                "type": "string",
                "description": "The wrong answer; by default the reader answers.",
            },
            "note": {"type": "string", "description": "The source of the correction; kept in the history."},
        },
        optional=("answer", "note"),
    ),
    Tool(
        "forget",
        dict,
        "Withdraw documents that a person says are no longer true. They stay, marked as superseded.",
        {
            "documents": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 20},
            "note": {"type": "string", "description": "The reason; kept in the history."},
        },
        optional=("note",),
    ),
    Tool(
        "undo",
        dict,
        "Undo a lesson you taught. With everything_since, roll the store back to before an iteration instead, whoever "
        "made the later ones. The history is kept.",
        {
            "iteration": {"type": "integer", "minimum": 1, "description": "The iteration that `teach` named."},
            "everything_since": {"type": "boolean", "description": "Also undo every later iteration."},
            "confirm": {"type": "boolean", "description": "Needed for other people's work."},
        },
        optional=("everything_since", "confirm"),
    ),
)
SEARCH = Tool(
    "search",
    dict,
    "The documents most similar to a query, best first.",
    {
        "query": {"type": "string", "description": "What to look for."},
        "page": {"type": "integer", "minimum": 1, "description": "Which page of results; 1 is the best."},
        "k": {"type": "integer", "minimum": 1, "maximum": 50, "description": "Results a page; 5 by default."},
        "source_page": {"type": "string", "description": "Only documents of the page with this title."},
        "file": {"type": "string", "description": "Only documents of this file."},
    },
    optional=("page", "k", "source_page", "file"),
)
# For the skill that `kbgym connect --skill` writes.
TEACH = """\
# When a person corrects an answer

1. Find out the question, complete in itself, and every answer that would have been right.
2. Call `teach` with both, with the answer you gave, and with a note that names the person.
3. Tell the person what the result says was changed or not found, and that `undo` with the iteration it names
   reverses it.

Teach only what a person told you. What you found in the store yourself is not a correction.
"""


def tools_offered(role: Role, answering: bool) -> tuple[Tool, ...]:
    """Return a role's tools. A session that was asked a question has `answer`, and only the tools of a pass."""
    if answering:
        return tools_of(role)
    tools = tuple(SEARCH if tool.name == "search" else tool for tool in tools_of(role))
    kept = tuple(tool for tool in tools if tool.name not in ("answer", "done"))
    return (*kept, HOW_SURE, *(LESSONS if role == "curator" else ()))


class StoreToolbox:
    """The toolbox of one caller; calls wait until the store is `opened`."""

    instructions = INSTRUCTIONS

    def __init__(self, role: Role, answering: bool, opened: Callable[[], Awaitable[Opened]]) -> None:
        self._role, self._answering, self._opened = role, answering, opened

    def tools(self) -> tuple[Tool, ...]:
        return tools_offered(self._role, self._answering)

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        opened = await self._opened()
        from kbgym.serving.tool_calls import call_tool

        return await call_tool(*opened, name, arguments)
