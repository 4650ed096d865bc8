"""Agents by name, as given on the command line.

`reference` is the deterministic reader and curator; `MODULE:NAME` is your own: a function without arguments that makes
a policy for one pass.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.errors import BadInput
from kbgym.policy import Agent
from kbgym.tools import Role


def make_agent(name: str, role: Role) -> Agent:
    """What plays a role under this name."""
    if name == "reference":
        return ReferenceReader if role == "reader" else ReferenceCurator
    if ":" in name and not name.startswith(("llm:", "cassette:")):
        return _imported(name)
    raise BadInput(f"there is no agent {name!r}; use reference or MODULE:NAME.")


def _imported(name: str) -> Agent:
    module, _, attribute = name.partition(":")
    try:
        found: Callable[[], object] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"the agent {name!r} cannot be loaded: {error}.") from error
    if not callable(found):
        raise BadInput(f"the agent {name!r} is not a function that makes a policy.")
    return found  # type: ignore[return-value]
