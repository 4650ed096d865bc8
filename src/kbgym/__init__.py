"""Public API of kbgym: train a knowledge base the way one trains a model.

    import kbgym

    run = kbgym.train(kbgym.generate(people=80), "runs/small", questions=20)
    print(run.examine("reference", "test_in").summary)

Names are imported on first use, so that `import kbgym` is fast. Everything else is imported from its module.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbgym.api import Exam, Workspace, import_corpus, open, train
    from kbgym.api.workspace import frame
    from kbgym.errors import BadInput, Damaged, Failed, KbgymError, Missing
    from kbgym.gym.actions import Action, Add, Answer, Delete, Done, Edit, Link, LinkMany, Read, Search, Unlink
    from kbgym.gym.environment import Environment
    from kbgym.gym.episode import Transcript, play
    from kbgym.gym.grading import grade
    from kbgym.gym.observations import documents
    from kbgym.gym.policy import AgentFailed, Backward, Forward, Policy, View
    from kbgym.integrations.gymnasium import ReaderEnv
    from kbgym.search.embed import default_embedder
    from kbgym.search.engine import Engine
    from kbgym.store import Ledger, Record, Store, ledger
    from kbgym.sync import run_sync
    from kbgym.trace.backend import save_store
    from kbgym.trace.folder import StoreFolder, open_folder
    from kbgym.training.exam import Row, examine, summarise
    from kbgym.training.probe import gradient, probe_run
    from kbgym.training.run import Run, Settings
    from kbgym.training.session import Agents
    from kbgym.training.trainer import Trainer
    from kbgym.worlds.people import generate
    from kbgym.worlds.world import Document, Key, Question, World

__version__ = "0.2.0"  # a literal: looking it up in the installed metadata takes 25 ms

# onnxruntime 1.29 and later looks up a telemetry host unless this is set before its import; subprocesses inherit it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_HOME = {
    "kbgym.gym.actions": "Action Add Answer Delete Done Edit Link LinkMany Read Search Unlink",
    "kbgym.gym.observations": "documents",
    "kbgym.api": "Workspace Exam import_corpus open train",
    "kbgym.api.workspace": "frame",
    "kbgym.gym.environment": "Environment",
    "kbgym.gym.episode": "Transcript play",
    "kbgym.errors": "BadInput Damaged Failed KbgymError Missing",
    "kbgym.gym.grading": "grade",
    "kbgym.integrations.gymnasium": "ReaderEnv",
    "kbgym.gym.policy": "AgentFailed Backward Forward Policy View",
    "kbgym.training.exam": "Row examine summarise",
    "kbgym.training.probe": "gradient probe_run",
    "kbgym.training.run": "Run Settings",
    "kbgym.training.session": "Agents",
    "kbgym.training.trainer": "Trainer",
    "kbgym.search.embed": "default_embedder",
    "kbgym.search.engine": "Engine",
    "kbgym.store": "Ledger Record Store ledger",
    "kbgym.sync": "run_sync",
    "kbgym.trace.backend": "save_store",
    "kbgym.trace.folder": "StoreFolder open_folder",
    "kbgym.worlds.people": "generate",
    "kbgym.worlds.world": "Document Key Question World",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

# fmt: off
__all__ = [
    "Action", "Add", "AgentFailed", "Agents", "Answer", "Backward", "BadInput", "Damaged", "Delete",
    "Document", "Done", "Edit", "Engine", "Environment", "Exam", "Failed", "Forward", "KbgymError", "Key",
    "Ledger", "Link", "LinkMany", "Missing", "Policy", "Question", "Read", "ReaderEnv", "Record", "Row",
    "Run", "Search", "Settings", "Store", "StoreFolder", "Trainer", "Transcript", "Unlink", "View",
    "Workspace", "World", "__version__", "default_embedder", "documents", "examine", "frame", "generate",
    "grade", "gradient", "import_corpus", "ledger", "open", "open_folder", "play", "probe_run", "run_sync",
    "save_store", "summarise", "train",
]
# fmt: on


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kbgym' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
