"""Turns and results made from the text of an observation."""

from __future__ import annotations

import re

from kbgym.gym.actions import (
    Action,
    Add,
    Added,
    Delete,
    Deleted,
    Edit,
    Edited,
    Error,
    Found,
    Link,
    Linked,
    LinkMany,
    Observation,
    Opened,
    Read,
    Result,
    Search,
    ShownDocument,
    Unlink,
    Unlinked,
)
from kbgym.gym.observations import documents
from kbgym.gym.policy import Agenda, Turn


def turn(action: Action, text: str) -> Turn:
    """Return a turn whose observation holds the documents of a text."""
    links = {id: int(count) for id, count in re.findall(r"^\[(.+?)\] .*\((\d+) links?\)", text, re.MULTILINE)}
    shown = (ShownDocument(id, said, links.get(id)) for id, said in documents(text))
    return Turn(action, Observation(text, tuple(shown)))


def note(agenda: Agenda, action: Action, text: str = "") -> None:
    """Note a turn that succeeded, or failed if the text begins with "Error: "."""
    shown = dict(documents(text))
    agenda.note_turn(action, _result(action, text, tuple(shown)), lambda id: (shown[id], ()))


def _result(action: Action, text: str, ids: tuple[str, ...]) -> Result:
    if text.startswith("Error: "):
        return Error(text.removeprefix("Error: "))
    match action:
        case Search(_, page):
            return Found(ids, page)
        case Read(id):
            return Opened(id, ids[1:])
        case Add():
            return Added(ids[0])
        case Edit(id):
            return Edited(id)
        case Delete(id):
            return Deleted(id)
        case Link(source, target):
            return Linked(source, (target,))
        case LinkMany(source, targets):
            return Linked(source, targets)
        case Unlink(source, target):
            return Unlinked(source, target)
    raise ValueError(action)
