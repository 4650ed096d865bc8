"""Agents by name, as given on the command line.

`reference` is the deterministic reader and curator, `general` a reader of any text; `small` is a small language model
on this machine; `llm:PROVIDER/MODEL` is any language model, `cassette:FILE` a recorded one; `hand` is a
person at the terminal and `hand:FOLDER` whoever answers there;
`command:LINE` is a program that plays over MCP, and `claude-code`, `codex` and others are such lines, ready made;
`MODULE:NAME` is your own: a function without arguments that makes a policy for one pass.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection
from pathlib import Path

from kbgym import plugins
from kbgym.agents.external.agent import CommandAgent
from kbgym.agents.external.command_line import READY, is_command
from kbgym.agents.general.agenda import GeneralAgenda
from kbgym.agents.general.curator import GeneralCurator
from kbgym.agents.general.reader import GeneralReader
from kbgym.agents.human import hand_agent, is_hand
from kbgym.agents.llm.connect import Models, is_model
from kbgym.agents.llm.judge import LLMJudge
from kbgym.agents.llm.policy import LLMAgent
from kbgym.agents.llm.prompting import skill_of
from kbgym.agents.llm.small import NAME as SMALL
from kbgym.agents.reference.agenda import ReferenceAgenda
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.neutral import NEUTRAL
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.agents.small import SmallAgent
from kbgym.agents.small_curator import SmallCurator
from kbgym.agents.trust import PLAYED_LIVE, refuse_stranger
from kbgym.errors import BadInput
from kbgym.gym.policy import Agenda, Agent
from kbgym.gym.tools import Role


def make_agent(
    name: str,
    role: Role,
    models: Models | None = None,
    strategy: str = "paper",
    *,
    about: str = "",
    indexes: bool = True,
    trusted: Collection[str] | None = None,
    kept: Path | None = None,
) -> Agent:
    """What plays a role under this name; the models of one run share `models`.

    What a model is told follows the strategy, what the world says of itself, and whether the store may have indexes. A
    name that stands in a file, and was not given by the person, must be built in or among those `trusted`. What the
    processes of a command print is kept in the file `kept`.
    """
    if trusted is not None:
        refuse_stranger(name, trusted)
    if name == "reference":
        return ReferenceReader if role == "reader" else ReferenceCurator
    if name == "general":
        return GeneralReader if role == "reader" else GeneralCurator
    if name.startswith("neutral:"):
        return _neutral(name.partition(":")[2], role)
    if is_model(name):
        if name != SMALL:
            agent = LLMAgent(models or Models(), name, role, skill=skill_of(role, strategy, about, indexes))
            if agent.name != SMALL:  # else what it said was recorded
                return agent
        if role == "reader":
            return SmallAgent(models or Models(), name, role)
        if strategy != "class":
            raise BadInput("small curates what an agenda names: train with --strategy class.")
        return SmallCurator(models or Models(), name, role)
    if is_hand(name):
        return hand_agent(name, skill_of(role, strategy, about, indexes))
    if is_command(name):
        return CommandAgent(name, role, skill_of(role, strategy, about, indexes), kept)
    if name == PLAYED_LIVE:
        raise BadInput(f"the {role} here was an agent that was connected then; name another with --{role}.")
    if ":" in name:
        return _imported(name)
    if plugins.has("kbgym.agents", name):
        made: Agent = plugins.load("kbgym.agents", name)(role)
        return made
    raise BadInput(
        f"there is no agent {name!r}; use reference, general, small, neutral:NAME, llm:openai/MODEL, "
        f"llm:anthropic/MODEL, llm:local/MODEL, cassette:FILE, command:LINE, {', '.join(READY)}, hand, hand:FOLDER "
        "or MODULE:NAME."
    )


def _neutral(name: str, role: Role) -> Agent:
    if name not in NEUTRAL:
        raise BadInput(f"there is no neutral reader {name!r}; there are {', '.join(NEUTRAL)}.")
    if role != "reader":
        raise BadInput(f"neutral:{name} reads; it does not curate.")
    return NEUTRAL[name]


def make_agenda(agent: str = "reference") -> Agenda:
    """An agenda that has seen no event yet: one that knows the benchmark's grammar, or one for any text."""
    return GeneralAgenda() if agent == "general" else ReferenceAgenda()


def make_judge(name: str, models: Models | None = None, trusted: Collection[str] | None = None) -> LLMJudge | None:
    """The judge of near-duplicates under this name; None is the offline rule."""
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
    try:
        found: Callable[[], object] = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever the module does when it is imported
        said = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise BadInput(f"the agent {name!r} cannot be loaded: {said}.") from error
    if not callable(found):
        raise BadInput(f"the agent {name!r} is not a function that makes a policy.")
    return found  # type: ignore[return-value]
