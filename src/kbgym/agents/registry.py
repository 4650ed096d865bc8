"""Agents by name, as given on the command line.

`reference` is the deterministic reader and curator; `llm:PROVIDER/MODEL` is a language model, `cassette:FILE` a
recorded one; `MODULE:NAME` is your own: a function without arguments that makes a policy for one pass.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from kbgym.agents.judge import LLMJudge
from kbgym.agents.llm import LLMAgent
from kbgym.agents.prompting import skill_of
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.errors import BadInput
from kbgym.llm.connect import Models, is_model
from kbgym.policy import Agent
from kbgym.tools import Role


def make_agent(name: str, role: Role, models: Models | None = None, strategy: str = "paper") -> Agent:
    """What plays a role under this name; the models of one run share `models`.

    The strategy decides which prompt a model curates by.
    """
    if name == "reference":
        return ReferenceReader if role == "reader" else ReferenceCurator
    if is_model(name):
        return LLMAgent(models or Models(), name, role, skill=skill_of(role, strategy))
    if ":" in name:
        return _imported(name)
    raise BadInput(
        f"there is no agent {name!r}; use reference, llm:openai/MODEL, llm:anthropic/MODEL, llm:local/MODEL, "
        "cassette:FILE or MODULE:NAME."
    )


def make_judge(name: str, models: Models | None = None) -> LLMJudge | None:
    """The judge of near-duplicates under this name; None is the offline rule."""
    if name == "rule":
        return None
    if is_model(name):
        return LLMJudge(models or Models(), name)
    raise BadInput(f"there is no judge {name!r}; use rule or a model such as llm:openai/MODEL.")


def _imported(name: str) -> Agent:
    module, _, attribute = name.partition(":")
    try:
        found: Callable[[], object] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"the agent {name!r} cannot be loaded: {error}.") from error
    if not callable(found):
        raise BadInput(f"the agent {name!r} is not a function that makes a policy.")
    return found  # type: ignore[return-value]
