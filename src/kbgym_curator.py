"""What verifiers finds under the name `kbgym-curator`; it is `kbgym.integrations.verifiers_curator`."""

from kbgym.integrations.verifiers_curator import CuratorHarness, CuratorTaskset
from kbgym.integrations.verifiers_reader import ReaderPassEnv

__all__ = ["CuratorHarness", "CuratorTaskset", "ReaderPassEnv"]
