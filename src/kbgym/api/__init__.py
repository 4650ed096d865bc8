"""The Python API: worlds, runs and stores as one opened object, shared by the command line, the server and the viewer.

Modules that train or import are loaded on demand.
"""

import importlib
from typing import TYPE_CHECKING, Any

from kbgym.api.workspace import Exam, Workspace, open

if TYPE_CHECKING:
    from kbgym.api.training import beginning, import_corpus, teach, train, trainer_for

__all__ = ["Exam", "Workspace", "beginning", "import_corpus", "open", "teach", "train", "trainer_for"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("kbgym.api.training"), name)
