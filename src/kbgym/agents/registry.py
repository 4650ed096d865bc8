"""Agents by name, as given on the command line.

`reference` is the deterministic reader and curator, `reference-v3` the same for benchmark v3, `general` works on any
text, `neutral:NAME` and `neutral-v3:NAME` are rule-based readers.
`llm:PROVIDER/MODEL` is a language model, `cassette:FILE` a recorded one, and `hand` a person at the terminal.
`command:LINE` is a program that plays over MCP; `claude-code`, `codex` and others are predefined commands.
`MODULE:NAME` is a user's own agent: a function without arguments that returns a policy for one pass.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from kbgym import plugins
from kbgym.agents.external.agent import CommandAgent
from kbgym.agents.external.command_line import READY, is_command
from kbgym.agents.general.agenda import GeneralAgenda
from kbgym.agents.general.curator import GeneralCurator
from kbgym.agents.general.reader import GeneralReader
from kbgym.agents.live import AtTerminal
from kbgym.agents.llm.connect import Models, is_model
from kbgym.agents.llm.policy import LLMAgent, LLMJudge
from kbgym.agents.llm.prompting import skill_of
from kbgym.agents.reference.agenda import ReferenceAgenda
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.neutral import NEUTRAL
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.agents.reference.v3 import NEUTRAL_V3, ReportReader
from kbgym.agents.reference.v3_curator import ReportAgenda, ReportCurator
from kbgym.agents.trust import HAND, PLAYED_LIVE, refuse_stranger
from kbgym.errors import BadInput
from kbgym.gym.policy import Agenda, Agent
from kbgym.gym.tools import Role

_RULES: dict[str, dict[Role, Agent]] = {
    "reference": {"reader": ReferenceReader, "curator": ReferenceCurator},
    "reference-v3": {"reader": ReportReader, "curator": ReportCurator},
    "general": {"reader": GeneralReader, "curator": GeneralCurator},
    **{f"neutral:{name}": {"reader": reader} for name, reader in NEUTRAL.items()},
    **{f"neutral-v3:{name}": {"reader": reader} for name, reader in NEUTRAL_V3.items()},
}


def make_agent(
    name: str,
    role: Role,
    models: Models | None = None,
    strategy: str = "paper",
    *,
    about: str = "",
    trusted: Collection[str] | None = None,
    kept: Path | None = None,
) -> Agent:
    """Return the agent of this name for a role.

    Args:
        models: Shared by all models of one run.
        strategy: The curation strategy; it selects the prompt.
        about: The world's description of itself, for the prompt.
        trusted: Names the user allowed, if the name comes from a file; built-in names are always allowed.
        kept: The log file for output of an external agent's processes.
    """
    if trusted is not None:
        refuse_stranger(name, trusted)
    if name in _RULES:
        if role not in _RULES[name]:
            raise BadInput(f"{name} reads; it does not curate.")
        return _RULES[name][role]
    if is_model(name):
        return LLMAgent(models or Models(), name, role, skill=skill_of(role, strategy, about))
    if name == HAND:
        return AtTerminal
    if is_command(name):
        return CommandAgent(name, role, skill_of(role, strategy, about), kept)
    if name == PLAYED_LIVE:
        raise BadInput(f"the {role} here was an agent that was connected then; name another with --{role}.")
    if ":" in name and not name.startswith(("neutral:", "neutral-v3:")):
        return _imported(name)
    if plugins.has("kbgym.agents", name):
        made: Agent = plugins.load("kbgym.agents", name)(role)
        return made
    raise BadInput(
        f"there is no agent {name!r}; use {', '.join([*_RULES, *READY])}, llm:openai/MODEL, llm:anthropic/MODEL, "
        "llm:local/MODEL, cassette:FILE, command:LINE, hand or MODULE:NAME."
    )


AGENDAS: dict[str, type[Agenda]] = {"general": GeneralAgenda, "reference-v3": ReportAgenda}


def make_agenda(agent: str = "reference") -> Agenda:
    """Return an empty agenda of these agents, by default that of the benchmark's grammar."""
    return AGENDAS.get(agent, ReferenceAgenda)()


def make_judge(name: str, models: Models | None = None, trusted: Collection[str] | None = None) -> LLMJudge | None:
    """Return the near-duplicate judge of this name, or None for the offline rule."""
    if trusted is not None:
        refuse_stranger(name, trusted)
    if name == "rule":
        return None
    if is_model(name):
        return LLMJudge(models or Models(), name)
    raise BadInput(f"there is no judge {name!r}; use rule or a model such as llm:openai/MODEL.")


def _imported(name: str) -> Agent:
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise BadInput(f"{name!r} is no agent: MODULE:NAME is a module that can be imported and a name in it.")
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)  # last on the path, so that a file here shadows no installed module
    try:
        found: Callable[[], object] = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # importing runs arbitrary code, which may raise anything
        said = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise BadInput(f"the agent {name!r} cannot be loaded: {said}.") from error
    if not callable(found):
        raise BadInput(f"the agent {name!r} is not a function that makes a policy.")
    return found  # type: ignore[return-value]
