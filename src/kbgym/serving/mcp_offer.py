"""What a served store offers over MCP, by role: instructions, tools, prompts, resources. It needs no store for that."""

from __future__ import annotations

from kbgym.gym.tools import Role, Tool, tools_of

INSTRUCTIONS = (
    "A store of one-sentence documents and links between them. Search it, and read what you find: reading an "
    "index gives everything it links to. An id stands in brackets before its document. `how_sure` tells what an answer "
    "rested on. Where there is a tool `teach`, call it whenever somebody corrects an answer: the store learns from it."
)
_ANSWER = {"type": "string", "description": "The answer alone: a name, a number, a word."}
HOW_SURE = Tool(
    "how_sure",
    dict,
    "What the documents you opened lately are: originals, or indexes, and who wrote and changed those. Name some of "
    "them, or none for all.",
    {"documents": {"type": "array", "items": {"type": "string"}, "maxItems": 14}},
    optional=("documents",),
)
# What a curator may do beside the tools of a pass.
LESSONS = (
    Tool(
        "teach",
        dict,
        "A correction somebody gave: the question, and every accepted answer to it. The store learns from it.",
        {
            "question": {"type": "string", "description": "The question, complete in itself."},
            "answers": {"type": "array", "items": _ANSWER, "minItems": 1, "maxItems": 20},
            "answer": {"type": "string", "description": "What was answered before; else the store's reader answers."},
            "note": {"type": "string", "description": "Where it comes from; kept in the history."},
        },
        optional=("answer", "note"),
    ),
    Tool(
        "undo",
        dict,
        "Take back what an iteration did and everything since; the history is kept, and can be undone in turn.",
        {"iteration": {"type": "integer", "minimum": 1, "description": "The first iteration to take back."}},
    ),
)
_PROMPTS = {
    "answer": "How to find an answer in this store.",
    "curate": "How to keep this store in order.",
    "teach": "What to do when somebody corrects an answer.",
}
STATISTICS, AGENDA, DOCUMENT = "kbgym://statistics", "kbgym://agenda", "kbgym://document/"
_TEACH = """\
# When somebody corrects an answer

1. Make sure what the question was, complete in itself, and every answer that would have been right.
2. Call `teach` with both, with what you had answered, and with a note that says who told you.
3. If the result is a lesson for you to work on, follow it with the tools for editing until `done`.
4. Tell the person what was learnt, and that `undo` with the iteration the result names takes it back.

Teach only what a person told you. What you found in the store yourself is no correction.
"""


def tools_offered(role: Role, answering: bool, curates: bool = False) -> tuple[Tool, ...]:
    """A role's tools; answering needs a question, and `done` ends a pass, which only one who `curates` plays."""
    left_out = {"answer"} if not answering else set()
    tools = tuple(tool for tool in tools_of(role) if tool.name not in left_out and (tool.name != "done" or curates))
    if answering:  # what it is asked is answered with these alone
        return tools
    return (*tools, HOW_SURE, *(LESSONS if role == "curator" else ()))


def prompts_offered(role: Role) -> dict[str, str]:
    return {name: what for name, what in _PROMPTS.items() if role == "curator" or name == "answer"}


def prompt_offered(role: Role, name: str) -> str | None:
    """The skill of that name; None where a role has none."""
    if name not in prompts_offered(role):
        return None
    from kbgym.agents.llm.prompting import skill_of

    return _TEACH if name == "teach" else skill_of("reader" if name == "answer" else "curator").text


def resources_offered(role: Role, answering: bool) -> dict[str, str]:
    """Addresses and what is there; one with braces is a template. A question is answered with tools alone."""
    if answering:
        return {}
    every = {STATISTICS: "What the store holds, in numbers.", DOCUMENT + "{id}": "A document and its links."}
    return every | ({AGENDA: "What is worth indexing next."} if role == "curator" else {})
