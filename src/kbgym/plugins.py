"""Plugin discovery: backends, engines, agents, worlds and commands, built in or from other packages.

Built-in plugins are listed in a table. Another package adds one by an entry point in a group of the same name:

    [project.entry-points."kbgym.agents"]
    echo = "my_package:echo"

A plugin is imported only when it is loaded by name.

| group | an entry is |
| --- | --- |
| kbgym.backends | a `trace.backend.BackendPlugin`, named by its URL scheme; or `hnsw`, the approximate index |
| kbgym.engines | a function `(workers, address)` that returns a `WorkEngine` with `close` |
| kbgym.agents | a function of the role ("reader" or "curator") that returns an agent |
| kbgym.worlds | a class that fits `worlds.kinds.WorldKind`, named as in `world.json` |
| kbgym.commands | a click command |
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from kbgym.errors import BadInput, Failed, KbgymError

Group = Literal["kbgym.backends", "kbgym.engines", "kbgym.agents", "kbgym.worlds", "kbgym.commands"]

BUILT_IN: dict[str, dict[str, str]] = {
    "kbgym.backends": {
        "postgresql": "kbgym.backends.postgres.backend:PLUGIN",
        "postgres": "kbgym.backends.postgres.backend:PLUGIN",
        "hnsw": "kbgym.backends.hnsw",
    },
    "kbgym.engines": {"ray": "kbgym.engines.ray:RayEngine"},
    "kbgym.worlds": {
        "people": "kbgym.worlds.people.kind:PeopleKind",
        "people-v3": "kbgym.worlds.people3.kind:People3Kind",
        "phantomwiki": "kbgym.worlds.phantomwiki.kind:WikiKind",
    },
}


@cache
def _table(group: Group) -> dict[str, EntryPoint]:
    """Return the plugins of a group by name; a built-in plugin takes precedence over another of the same name."""
    ours = {name: EntryPoint(name, value, group) for name, value in BUILT_IN.get(group, {}).items()}
    return {**{found.name: found for found in entry_points(group=group)}, **ours}


def names(group: Group) -> list[str]:
    """Return the names of all plugins of a group without importing any."""
    return list(_table(group))


def has(group: Group, name: str) -> bool:
    """Return True if a group has a plugin of this name; installed packages are searched only if none is built in."""
    return name in BUILT_IN.get(group, ()) or name in _table(group)


def load(group: Group, name: str) -> Any:
    """Import a plugin. Raise `BadInput` if there is none and `Failed` if it cannot be imported."""
    ours = BUILT_IN.get(group, {}).get(name)
    found = EntryPoint(name, ours, group) if ours else _table(group).get(name)
    kind = group.removeprefix("kbgym.")
    if found is None:
        raise BadInput(f"there is no plugin {name!r} among the {kind}; installed are {', '.join(names(group))}.")
    try:
        return found.load()
    except KbgymError:
        raise
    except Exception as error:  # a third-party module may raise anything on import
        said = f"{type(error).__name__}: {error}"
        raise Failed(f"the plugin {name!r} ({found.value}, {kind}) cannot be loaded: {said}") from error
