"""How results read as text: `paper`, as the paper has it, and `rich`, which says what a reader would otherwise look up.

`rich` marks what has links and how many ("[n86] People who live in Lund (34 links)"), puts the documents of an index
that state the same kind of thing together, shows a fact that is told from both ends once, and says where results end.
`documents` reads the documents back out of either. Results are ids; texts and links are asked for through a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from kbgym.gym.actions import (
    Added,
    Answered,
    Deleted,
    Edited,
    Error,
    Finished,
    Found,
    Linked,
    Look,
    Merged,
    Opened,
    Result,
    Unlinked,
)
from kbgym.gym.tools import PAGE_SIZE

Observations = Literal["paper", "rich"]
OBSERVATIONS: tuple[Observations, ...] = get_args(Observations)

_LINE = re.compile(r"^\[([^\]\n]+)\] (.*)$", re.MULTILINE)
_MARK = re.compile(r"(?: \(\d+ links?\))?(?: \(also told as \[[^\]\n]+\]\))*$")
_SIZE = re.compile(r" \((\d+) links?\)(?: \(also told as .*\))?$")
_WORD = re.compile(r"[^\W_]+")


def documents(observation: str) -> list[tuple[str, str]]:
    """The documents an observation shows, as (id, text), in order."""
    return [(id, _MARK.sub("", text)) for id, text in _LINE.findall(observation)]


def sizes(observation: str) -> dict[str, int]:
    """How many links the documents of a rich observation have, where it says so."""
    marks = ((id, _SIZE.search(text)) for id, text in _LINE.findall(observation))
    return {id: int(mark[1]) for id, mark in marks if mark}


def observe(result: Result, look: Look, kind: Observations) -> str:
    """What the agent reads of a result, as the store is right after it."""
    if kind == "rich":
        return _rich(result, look)
    return render(result, lambda id: look(id)[0])


def render(result: Result, text_of: Callable[[str], str]) -> str:
    """What the agent reads. `text_of` gives a document's text at the time of the action."""

    def line(id: str) -> str:
        return f"[{id}] {text_of(id)}"

    match result:
        case Found(ids, _):
            return "\n".join(line(id) for id in ids) or "Nothing found."
        case Opened(id, links):
            if not links:
                return f"{line(id)}\nIt links to nothing."
            return "\n".join([line(id), f"It links to {len(links)}:", *(line(target) for target in links)])
        case Answered():
            return "Answer submitted."
        case Added(id):
            return f"Added.\n{line(id)}"
        case Merged(into, gone):
            folded = f", and [{gone}] was folded into it" if gone else ""
            return f"The store already says this{folded}.\n{line(into)}"
        case Edited(id):
            return f"Edited.\n{line(id)}"
        case Deleted(id):
            return f"Deleted [{id}] and every link to it."
        case Linked(source, linked, unknown, already, itself):
            parts = [f"Linked [{source}] to {len(linked)} document{'' if len(linked) == 1 else 's'}."]
            if already:
                parts.append(f"Already linked: {', '.join(already)}.")
            if unknown:
                parts.append(f"No such document, skipped: {', '.join(unknown)}.")
            if itself:
                parts.append("A document cannot link to itself: skipped.")
            return " ".join(parts)
        case Unlinked(source, target):
            return f"Removed the link from [{source}] to [{target}]."
        case Finished():
            return "Done."
        case Error(message):
            return f"Error: {message}"


def _rich(result: Result, look: Look) -> str:
    def line(id: str) -> str:
        text, links = look(id)
        return f"[{id}] {text}" + (f" ({_count(len(links))})" if links else "")

    match result:
        case Found(ids, page):
            shown = "\n".join(line(id) for id in ids)
            if len(ids) < PAGE_SIZE:
                return f"{shown}\nThe results end here." if shown else f"Nothing found on page {page}."
            return shown
        case Opened(id, links) if links:
            groups = _grouped([(target, look(target)[0]) for target in links])
            shown = "\n\n".join("\n".join(line(target) + also for target, also in group) for group in groups)
            return f"{line(id)}\nIt links to:\n{shown}"
        case Merged(into, gone):
            folded = f", and [{gone}] was folded into it" if gone else ""
            return f"The store already says this{folded}.\n{line(into)}"
        case Linked(source):
            return f"{render(result, lambda id: look(id)[0])} It has {_count(len(look(source)[1]))} now."
    return render(result, lambda id: look(id)[0])


def _count(links: int) -> str:
    return f"{links} link{'' if links == 1 else 's'}"


def _grouped(targets: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Documents by what they state, each with a note where it is told from the other end too; first come, first shown.

    Two sentences with the same words in another order are one fact told from both ends. What is stated is what is left
    of a sentence without its names and numbers.
    """
    groups: dict[tuple[str, ...], dict[tuple[str, ...], list[str]]] = {}
    for id, text in targets:
        words = _WORD.findall(text)
        stated = tuple(word for word in words[1:] if not word[:1].isupper() and not word.isdigit())
        groups.setdefault(stated, {}).setdefault(tuple(sorted(words)), []).append(id)
    found = []
    for facts in groups.values():
        found.append([(ids[0], "".join(f" (also told as [{id}])" for id in ids[1:])) for ids in facts.values()])
    singles = [fact for group in found if len(group) == 1 for fact in group]
    return [group for group in found if len(group) > 1] + ([singles] if singles else [])
