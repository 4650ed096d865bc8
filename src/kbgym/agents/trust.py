"""Trust in agents: a user may name any agent, but agents named by a folder run only once the folder is trusted.

Trust is kept in the user's configuration folder, one file for each name in each place. The file's name is a hash of
both, so that another place, or another name in the same place, needs trust of its own. No agent is loaded here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from kbgym.agents.external.command_line import PREFIX, is_command
from kbgym.canonical import digest
from kbgym.errors import BadInput

HAND = "hand"
PLAYED_LIVE = "play"  # the recorded name of an agent that connected and played every pass
NEUTRAL_READERS = ("trusting", "sceptical", "first", "overlap", "joining")
NEUTRAL_V3_READERS = ("trusting", "sceptical", "joining")
BUILT_IN = frozenset(
    {"reference", "reference-v3", "general", "rule", PLAYED_LIVE}
    | {f"neutral:{name}" for name in NEUTRAL_READERS}
    | {f"neutral-v3:{name}" for name in NEUTRAL_V3_READERS}
)
_DOES = {"llm": "ask the model {} at your cost", "cassette": "play back the file {}", "command": "run the command {}"}


def allowed(
    place: str, names: Iterable[str], given: Collection[str | None] = (), trust: bool = False
) -> frozenset[str]:
    """Return the names of a place if all of them may run: built-in names, names the person gave, and trusted names.

    With `trust` they are trusted from now on. Otherwise raise BadInput with the agents that the place names.
    """
    known = frozenset(names)
    strangers = sorted(name for name in known - set(given) if not is_trusted(place, name))
    if trust:
        remember(place, strangers)
    elif strangers:
        does = " and ".join(_does(name) for name in strangers)
        raise BadInput(f"{place} would {does}, and is not trusted; review it and pass --trust, or name other agents.")
    return known


def is_trusted(place: str, name: str) -> bool:
    """Return True if a name is built in or remembered for this place."""
    return name in BUILT_IN or _file(place, name).is_file()


def refuse_stranger(name: str, trusted: Collection[str]) -> None:
    """Raise BadInput for an agent that is neither built in nor trusted, before it is loaded."""
    if name not in BUILT_IN and name not in trusted:
        raise BadInput(f"the agent {name!r} comes from a file and would {_does(name)}; it is not trusted.")


def remember(place: str, names: Iterable[str]) -> None:
    """Trust these names in this place from now on."""
    for name in sorted(set(names) - BUILT_IN):
        file = _file(place, name)
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file.write_bytes(os.fsencode(f"{place}\n{name}\n"))
        except OSError as error:
            raise BadInput(f"cannot remember in {file.parent} that {place} is trusted: {error.strerror}.") from error


def refuse_hand(names: Iterable[str]) -> None:
    """Raise BadInput if a person plays where exams are compared: a person remembers earlier questions."""
    if HAND in names:
        raise BadInput("hand remembers earlier questions, so its exams cannot be compared; use `kbgym exam`.")


def _does(name: str) -> str:
    kind, _, rest = name.partition(":")
    if is_command(name):
        kind, rest = "command", name.removeprefix(PREFIX)
    return _DOES[kind].format(repr(rest)) if kind in _DOES else f"import and call {name!r}"


def _file(place: str, name: str) -> Path:
    # A database is identified by its address, a folder by its resolved path.
    where = place if "://" in place else str(Path(place).resolve())
    return config_folder() / "trusted" / digest(os.fsencode(f"{where}\0{name}"))


def config_folder() -> Path:
    """Return $KBGYM_CONFIG, else kbgym below $XDG_CONFIG_HOME, else ~/.config/kbgym; it may not exist yet."""
    if own := os.environ.get("KBGYM_CONFIG"):
        return Path(own)
    shared = os.environ.get("XDG_CONFIG_HOME")
    return (Path(shared) if shared else Path.home() / ".config") / "kbgym"
