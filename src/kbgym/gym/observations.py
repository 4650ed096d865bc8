"""Rendering of results as text, in the form of the paper (`paper`) or with more information (`rich`).

`rich` shows the number of links of a document ("[n86] People who live in Lund (34 links)"), groups the documents of an
index by the kind of fact they state, shows a fact that is stated from both ends once, and marks the end of the results.
`documents` parses the documents from either form. Results contain ids; texts and links are read through a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from textwrap import shorten
from typing import Literal, get_args

from msgspec.structs import replace

from kbgym.gym import actions
from kbgym.gym.actions import Learnt, Look, Observation, Opened, Result, ShownDocument, shown_by
from kbgym.gym.tools import PAGE_SIZE

Observations = Literal["paper", "rich"]
OBSERVATIONS: tuple[Observations, ...] = get_args(Observations)

_LINE = re.compile(r"^\[([^\]\n]+)\] (.*)$", re.MULTILINE)
_MARK = re.compile(r"(?: \(\d+ links?\))?(?: \((?:also told as|superseded by) \[[^\]\n]+\]\))*$")
HEADING = 200  # characters of an index shown in the slot, before its targets
_WORD = re.compile(r"[^\W_]+")


def documents(observation: Observation | str) -> list[tuple[str, str]]:
    """Return the documents of an observation as (id, text), in order; a plain text is parsed line by line."""
    if isinstance(observation, Observation):
        return [(document.id, document.text) for document in observation.documents]
    return [(id, _MARK.sub("", text)) for id, text in _LINE.findall(observation)]


def observe(
    result: Result, look: Look, kind: Observations, superseded_by: Callable[[str], tuple[str, ...]] | None = None
) -> Observation:
    """Render the result of an action for an agent, with the state of the store right after the action."""
    if kind == "rich":
        found = _rich(result, look)
    else:
        shown = {id: look(id)[0] for id in shown_by(result)}
        found = Observation(render(result, shown.__getitem__), tuple(ShownDocument(*one) for one in shown.items()))
    corrected = {one.id: by for one in found.documents if superseded_by and (by := superseded_by(one.id))}
    return _marked(found, corrected) if corrected else found


def _marked(found: Observation, corrected: dict[str, tuple[str, ...]]) -> Observation:
    """Mark documents that are superseded by corrections."""
    lines = []
    for line in found.text.split("\n"):
        by = corrected.get(line[1:].partition("] ")[0], ()) if line.startswith("[") else ()
        lines.append(line + "".join(f" (superseded by [{id}])" for id in by))
    documents = tuple(replace(one, superseded_by=corrected.get(one.id, ())) for one in found.documents)
    return Observation("\n".join(lines), documents)


def render(result: Result, text_of: Callable[[str], str]) -> str:
    """Return a result in the form of the paper. `text_of` returns a document's text at the time of the action."""

    def line(id: str) -> str:
        return f"[{id}] {text_of(id)}"

    match result:
        case actions.Found(ids, _, learnt):
            shown = "\n".join(line(id) for id in ids) or "Nothing found."
            return _with_slot(shown, ids, learnt, line, text_of)
        case Opened(id, links):
            said = f"It links to {len(links)}:" if links else "It links to nothing."
            if result.pages:
                said = _said_of_page(result)
            near = [one for one in result.near if one not in links]
            beside = ["Beside it on its page:", *map(line, near)] if near else []
            return "\n".join([line(id), *beside, said, *(line(target) for target in links)])
        case actions.Answered():
            return "Answer submitted."
        case actions.Added(id) | actions.Corrected(id):
            return f"Added.\n{line(id)}"
        case actions.Merged(into, gone):
            folded = f", and [{gone}] was folded into it" if gone else ""
            return f"The store already says this{folded}.\n{line(into)}"
        case actions.Edited(id):
            return f"Edited.\n{line(id)}"
        case actions.Deleted(id):
            return f"Deleted [{id}] and every link to it."
        case actions.Linked(source, linked, unknown, already, itself):
            parts = [f"Linked [{source}] to {len(linked)} document{'' if len(linked) == 1 else 's'}."]
            if already:
                parts.append(f"Already linked: {', '.join(already)}.")
            if unknown:
                parts.append(f"No such document, skipped: {', '.join(unknown)}.")
            if itself:
                parts.append("A document cannot link to itself: skipped.")
            return " ".join(parts)
        case actions.Unlinked(source, target):
            return f"Removed the link from [{source}] to [{target}]."
        case actions.Finished():
            return "Done."
        case actions.Error(message):
            return f"Error: {message}"


def _with_slot(
    shown: str, ids: Sequence[str], learnt: Sequence[Learnt], line: Callable[[str], str], text_of: Callable[[str], str]
) -> str:
    """Return a page of results followed by its slot; a document already on the page is named by id only."""
    parts, above = [shown], set(ids)
    for one in learnt:
        learnt_from = shorten(text_of(one.index), HEADING, placeholder=" …")
        parts.append(f"Learnt from a question like this ([{one.index}] {learnt_from}):")
        parts += [line(id) for id in one.targets if id not in above]
        if repeated := [f"[{id}]" for id in one.targets if id in above]:
            parts.append(f"Already above: {', '.join(repeated)}.")
        if more := one.total - len(one.targets):
            parts.append(f"And {more} more: read [{one.index}].")
        above.update(one.targets)
    return "\n".join(parts)


def _said_of_page(opened: Opened) -> str:
    """Return the heading of a page of links."""
    if not opened.links:
        return "It links to nothing that matches."
    more = f" Read it with page {opened.page + 1} for more." if opened.page < opened.pages else ""
    return f"Page {opened.page} of {opened.pages}, {len(opened.links)} of {opened.total} links.{more}"


def _rich(result: Result, look: Look) -> Observation:
    groups = [[_document(id, look) for id in shown_by(result)]]
    shown = "\n".join(map(_line, groups[0]))
    match result:
        case actions.Found(ids, page, learnt):
            lines = {document.id: _line(document) for document in groups[0]}
            shown = "\n".join(lines[id] for id in ids)
            if len(ids) < PAGE_SIZE:
                shown = f"{shown}\nThe results end here." if shown else f"Nothing found on page {page}."
            shown = _with_slot(shown, ids, learnt, lines.__getitem__, lambda id: look(id)[0])
        case Opened(_, links) if links and not result.near:
            (head, *targets), *_ = groups
            groups = [[head], *_grouped(targets)]
            linked = "\n\n".join("\n".join(map(_line, group)) for group in groups[1:])
            said = _said_of_page(result) if result.pages > 1 else "It links to:"
            shown = f"{_line(head)}\n{said}\n{linked}"
        case actions.Merged(_, gone):
            folded = f", and [{gone}] was folded into it" if gone else ""
            shown = f"The store already says this{folded}.\n{shown}"
        case actions.Linked(source):
            shown = f"{render(result, lambda id: look(id)[0])} It has {_count(len(look(source)[1]))} now."
        case _:
            shown = render(result, lambda id: look(id)[0])
    return Observation(shown, tuple(document for group in groups for document in group))


def _document(id: str, look: Look) -> ShownDocument:
    text, links = look(id)
    return ShownDocument(id, text, len(links) or None)


def _line(document: ShownDocument) -> str:
    links = f" ({_count(document.links)})" if document.links else ""
    return f"[{document.id}] {document.text}{links}" + "".join(f" (also told as [{id}])" for id in document.mirrors)


def _count(links: int) -> str:
    return f"{links} link{'' if links == 1 else 's'}"


def _grouped(targets: Sequence[ShownDocument]) -> list[list[ShownDocument]]:
    """Group documents by the kind of fact they state, in order of appearance, and fold mirrored facts into one.

    Two sentences with the same words in another order state one fact from both ends. The kind of a fact is its sentence
    without names and numbers.
    """
    groups: dict[tuple[str, ...], dict[tuple[str, ...], list[ShownDocument]]] = {}
    for target in targets:
        words = _WORD.findall(target.text)
        kind = tuple(word for word in words[1:] if not word[:1].isupper() and not word.isdigit())
        groups.setdefault(kind, {}).setdefault(tuple(sorted(words)), []).append(target)
    found = [
        [replace(first, mirrors=tuple(other.id for other in others)) for first, *others in facts.values()]
        for facts in groups.values()
    ]
    singles = [fact for group in found if len(group) == 1 for fact in group]
    return [group for group in found if len(group) > 1] + ([singles] if singles else [])
