"""Train a knowledge base the way one trains a model: the public names.

    from kbgym import Store, World, examine, open_folder

Everything else is reached through its module. Names are loaded when first used, so `import kbgym` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbgym.environment import Environment
    from kbgym.episode import Transcript, play
    from kbgym.errors import BadInput, Damaged, Failed, KbgymError, Missing
    from kbgym.grading import grade
    from kbgym.policy import AgentFailed, Backward, Forward, Policy, View
    from kbgym.protocol.exam import Row, examine, summarise
    from kbgym.protocol.probe import gradient
    from kbgym.protocol.run import Run, Settings
    from kbgym.protocol.train import Agents, Trainer
    from kbgym.search.embed import default_embedder
    from kbgym.search.engine import Engine
    from kbgym.store import Ledger, Record, Store, ledger
    from kbgym.trace.folder import StoreFolder, open_folder, save_store
    from kbgym.worlds.people import generate
    from kbgym.worlds.world import Document, Key, Question, World

_HOME = {
    "kbgym.environment": ("Environment",),
    "kbgym.episode": ("Transcript", "play"),
    "kbgym.errors": ("BadInput", "Damaged", "Failed", "KbgymError", "Missing"),
    "kbgym.grading": ("grade",),
    "kbgym.policy": ("AgentFailed", "Backward", "Forward", "Policy", "View"),
    "kbgym.protocol.exam": ("Row", "examine", "summarise"),
    "kbgym.protocol.probe": ("gradient",),
    "kbgym.protocol.run": ("Run", "Settings"),
    "kbgym.protocol.train": ("Agents", "Trainer"),
    "kbgym.search.embed": ("default_embedder",),
    "kbgym.search.engine": ("Engine",),
    "kbgym.store": ("Ledger", "Record", "Store", "ledger"),
    "kbgym.trace.folder": ("StoreFolder", "open_folder", "save_store"),
    "kbgym.worlds.people": ("generate",),
    "kbgym.worlds.world": ("Document", "Key", "Question", "World"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "AgentFailed",
    "Agents",
    "Backward",
    "BadInput",
    "Damaged",
    "Document",
    "Engine",
    "Environment",
    "Failed",
    "Forward",
    "KbgymError",
    "Key",
    "Ledger",
    "Missing",
    "Policy",
    "Question",
    "Record",
    "Row",
    "Run",
    "Settings",
    "Store",
    "StoreFolder",
    "Trainer",
    "Transcript",
    "View",
    "World",
    "default_embedder",
    "examine",
    "generate",
    "grade",
    "gradient",
    "ledger",
    "open_folder",
    "play",
    "save_store",
    "summarise",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kbgym' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
