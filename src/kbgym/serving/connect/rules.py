"""A few rules in a file that an agent reads at every start (AGENTS.md, CLAUDE.md, GEMINI.md), between two marks.

What stands outside the marks is somebody else's and keeps its bytes.
"""

from __future__ import annotations

from kbgym.errors import BadInput
from kbgym.gym.tools import Role


def rules_with(text: str, name: str, role: Role | None) -> str:
    """The text with the rules of a store, where they stood or at the end; without a role, without them."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    first, last = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    marks = text.count(first), text.count(last)
    block = line_end.join([first, *_rules(name, role), last]) if role is not None else ""
    if marks == (0, 0):
        if not block:
            return text
        gap = "" if not text else line_end if text.endswith("\n") else 2 * line_end
        return f"{text}{gap}{block}{line_end}"
    begin, end = text.find(first), text.find(last) + len(last)
    if marks != (1, 1) or end < begin:
        raise BadInput(f"the marks of {name} in it are not one pair; put that right by hand.")
    if block:
        return text[:begin] + block + text[end:]
    before, after = text[:begin], text[end:].removeprefix(line_end)
    return before + after if after else before.removesuffix(line_end)


def _rules(name: str, role: Role) -> list[str]:
    rules = [
        f"- When a question may be answered from the store behind the MCP server `{name}`, search there first,",
        "  and read what you find; say so when the store does not hold it.",
    ]
    if role == "curator":
        rules += [
            "- When somebody corrects an answer, call `teach` with the question and what is right. Teach nothing",
            "  that a person did not say. Tell which `undo` takes it back.",
        ]
    return rules
