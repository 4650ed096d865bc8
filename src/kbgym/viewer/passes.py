"""Passes as conversations: every action in plain words, every result line by line.

The agent read the output of `tools.render`. Documents are kept apart from the surrounding words, so that the page can
link them and mark the evidence. Exams keep ids only; the texts come from the frozen store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from difflib import SequenceMatcher
from typing import Any

import msgspec

from kbgym.canonical import encode
from kbgym.gym.actions import (
    Action,
    Added,
    Edited,
    Error,
    Found,
    Invalid,
    Linked,
    Merged,
    Opened,
    Result,
    Search,
    Unlinked,
    shown_by,
)
from kbgym.gym.observations import render

TextOf = Callable[[str], str]


def action_shown(action: Action) -> dict[str, Any]:
    """Return an action for the page: the tool, its text, the document it names, and those it links."""
    match action:
        case Search(query, page):
            return {"tool": "search", "text": query, "note": f"page {page}" if page > 1 else ""}
        case Invalid(name, reason):
            return {"tool": name or "invalid", "text": reason}
    found: dict[str, Any] = msgspec.to_builtins(action)
    if "source" in found:
        targets = found["targets"] if "targets" in found else [found["target"]]
        return {"tool": found["tool"], "id": found["source"], "targets": targets}
    return found


def result_shown(result: Result, text_of: TextOf) -> dict[str, Any]:
    """Return a result for the page: a sentence, and the documents it shows."""
    match result:
        case Found(ids):
            shown = shown_by(result)
            return {"kind": "found", "say": "" if ids else "Nothing found.", "lines": _lines(shown, text_of)}
        case Opened(id, links):
            many = f"It links to {len(links)}:" if links else "It links to nothing."
            return {"kind": "opened", "say": many, "head": _lines([id], text_of), "lines": _lines(links, text_of)}
        case Added(id) | Edited(id):
            say = "Added." if isinstance(result, Added) else "Edited."
            return {"kind": "edit", "say": say, "lines": _lines([id], text_of)}
        case Merged(into):
            return {"kind": "edit", "say": render(result, text_of).partition("\n")[0], "lines": _lines([into], text_of)}
        case Linked(source, linked):
            head, lines = _lines([source], text_of), _lines(linked, text_of)
            return {"kind": "edit", "say": render(result, text_of), "head": head, "lines": lines}
        case Error():
            return {"kind": "error", "say": render(result, text_of), "lines": []}
    return {"kind": "plain", "say": render(result, text_of), "lines": []}


def _lines(ids: Sequence[str], text_of: TextOf) -> list[dict[str, str]]:
    return [{"id": id, "text": text_of(id)} for id in ids]


def step(number: int, action: Action, result: Result, text_of: TextOf) -> dict[str, Any]:
    return {"n": number, **action_shown(action), "result": result_shown(result, text_of)}


def mark_evidence(steps: Sequence[dict[str, Any]], support: Callable[[str], Collection[str]], wanted: int) -> None:
    """Mark the lines that show a fact the answer depends on, and count the facts seen at each step."""
    seen: set[str] = set()
    for one in steps:
        result = one["result"]
        for line in (*result.get("head", ()), *result["lines"]):
            if found := support(line["id"]):
                line["evidence"] = True
                line["first"] = not seen.issuperset(found)
                seen.update(found)
        one["evidence"] = [len(seen), wanted]


def mark_shared(left: Sequence[tuple[Action, dict[str, Any]]], right: Sequence[tuple[Action, dict[str, Any]]]) -> None:
    """Mark the steps that both passes took; the others are the actions saved or spent."""
    before, after = ([encode(action) for action, _ in side] for side in (left, right))
    for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            left[block.a + offset][1]["shared"] = right[block.b + offset][1]["shared"] = True


def edited_id(result: Result) -> str | None:
    """Return the id of the document that an edit changed."""
    match result:
        case Added(id) | Edited(id):
            return id
        case Merged(into):
            return into
        case Linked(source, linked) if linked:
            return source
        case Unlinked(source):
            return source
    return None
