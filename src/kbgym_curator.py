"""What verifiers finds under the name `kbgym-curator`; it is `kbgym.research.verifiers_curator`."""

from kbgym.research.verifiers_curator import CuratorHarness, CuratorTaskset
from kbgym.research.verifiers_reader import ReaderPassEnv

__all__ = ["CuratorHarness", "CuratorTaskset", "ReaderPassEnv"]
