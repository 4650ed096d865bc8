"""The ten tools of agents: names, roles, schemas and validation.

A role is a set of tools: a reader is never shown an editing tool. `parse` converts a call of an agent into an action
and never fails: an invalid call becomes `Invalid`, whose observation gives the reason. This module is independent of
the store and of the rendering of results (`observations.py`).
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from kbgym.gym import actions
from kbgym.gym.actions import Action, Invalid
from kbgym.sanitize import is_plain

Role = Literal["reader", "curator"]

PAGE_SIZE = 5
MOST_TARGETS = 40
MOST_TEXT = 4_000
MOST_PAGE = 1_000_000_000


class Tool(msgspec.Struct, frozen=True):
    """A tool as an agent sees it: its name, its description and a JSON schema that never changes within a run."""

    name: str
    action: type[Any]
    description: str
    parameters: dict[str, dict[str, Any]]
    optional: Sequence[str] = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": self.parameters,
            "required": [name for name in self.parameters if name not in self.optional],
            "additionalProperties": False,
        }


_ACTIONS: dict[str, type[Any]] = {kind.__struct_config__.tag: kind for kind in get_args(Action)}
_DESCRIBED = tomllib.loads(Path(__file__).with_name("tools.toml").read_text(encoding="utf-8"))
TOOLS = {name: Tool(name, _ACTIONS[name], **described) for name, described in _DESCRIBED.items()}

ROLES: dict[Role, tuple[str, ...]] = {
    "reader": ("search", "read", "answer"),
    "curator": ("search", "read", "add", "edit", "delete", "link", "link_many", "unlink", "done"),
}
_EDITING = frozenset(ROLES["curator"]) - set(ROLES["reader"]) - {"done"} | {"correct"}


def is_editing(action: Action) -> bool:
    """Return True if an action may change a store."""
    return action.__struct_config__.tag in _EDITING


def documents_named(action: Action) -> tuple[str, ...]:
    """Return the ids of the documents that an action names."""
    named = tuple(getattr(action, field) for field in ("id", "source", "target") if hasattr(action, field))
    return (*named, *action.targets) if isinstance(action, actions.LinkMany) else named


def tools_of(role: Role) -> tuple[Tool, ...]:
    return tuple(TOOLS[name] for name in ROLES[role])


def openai_tools(role: Role) -> list[dict[str, Any]]:
    return [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.schema}}
        for t in tools_of(role)
    ]


# -- validation -----------------------------------------------------------------------------------------------------


def parse(name: str, arguments: Mapping[str, Any], role: Role) -> Action:
    """Return the action of a call, validated and with normalised texts, or `Invalid` with the reason."""
    shown = "".join(c for c in name[:40] if c.isprintable())
    if name not in ROLES[role]:
        return Invalid(shown, f"there is no tool {shown!r} here; the tools are {', '.join(ROLES[role])}.")
    try:
        action: Action = msgspec.convert(arguments, TOOLS[name].action)
    except msgspec.ValidationError as error:
        fields = ", ".join(TOOLS[name].schema["properties"]) or "nothing"
        return Invalid(shown, _plain(f"{name} takes {fields}: {error}."))
    except UnicodeEncodeError:
        return Invalid(shown, f"{name}: an argument's name is broken Unicode.")
    return check(action, role)


def check(action: Action, role: Role) -> Action:
    """Return an action with normalised texts, or `Invalid`. Every action is validated here before it is applied."""
    name = action.__struct_config__.tag
    if isinstance(action, Invalid):
        return Invalid(_plain(str(action.name))[:40], _plain(str(action.reason)))
    if name not in ROLES[role] and not (isinstance(action, actions.Correct) and role == "curator"):
        return Invalid(str(name), f"there is no tool {name!r} here; the tools are {', '.join(ROLES[role])}.")
    try:  # a policy in Python can put any value into a field, but the trace must stay readable
        action = msgspec.convert(msgspec.to_builtins(action), type(action))
    except (msgspec.ValidationError, TypeError, RecursionError) as error:
        return Invalid(str(name), _plain(f"{name}: {error}."))
    tidied: dict[str, str] = {}
    for field in ("text", "query", "about"):
        if (value := getattr(action, field, None)) is not None and (value or field != "about"):
            tidied[field] = text = " ".join(value.split())
            if problem := _problem(text, field):
                return Invalid(str(name), problem)
    for field in ("id", "source", "target"):
        if (value := getattr(action, field, None)) is not None and not _plain_id(value):
            return Invalid(str(name), f"{field} is not a document's id.")
    if isinstance(action, actions.Search | actions.Read) and not 1 <= action.page <= MOST_PAGE:
        shown = str(action.page) if abs(action.page) < 10**12 else "so large"
        return Invalid(str(name), f"there is no page {shown}; pages start at 1.")
    if isinstance(action, actions.LinkMany):
        if not action.targets:
            return Invalid("link_many", "targets is empty; name at least one document.")
        if (count := len(action.targets)) > MOST_TARGETS:
            reason = f"{count} targets are too many: at most {MOST_TARGETS} at once, and nothing was linked."
            return Invalid("link_many", reason)
        if not all(map(_plain_id, action.targets)):
            return Invalid("link_many", "targets holds something that is not a document's id.")
    return msgspec.structs.replace(action, **tidied) if tidied else action


def _problem(text: str, field: str) -> str | None:
    if not text or all(unicodedata.category(c) == "Cf" for c in text):
        return f"{field} is empty."
    if len(text) > MOST_TEXT:
        return f"{field} has {len(text):,} characters; at most {MOST_TEXT:,} are taken."
    if not is_plain(text):  # a document must read the same to an agent and to a person
        return f"{field} holds control characters, invisible ones, direction marks or broken Unicode; send plain text."
    return None


def _plain_id(id: str) -> bool:
    return 0 < len(id) <= 200 and id.isprintable() and is_plain(id)


def _plain(sentence: str) -> str:
    """Return a message of another library as one short line."""
    return "".join(c for c in sentence[:400].replace("`", "'").replace(" - at '$.", " in '") if c.isprintable())[:200]
