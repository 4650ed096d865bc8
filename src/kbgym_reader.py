"""What verifiers finds under the name `kbgym-reader`; it is `kbgym.research.verifiers_reader`."""

from kbgym.research.verifiers_reader import ReaderHarness, ReaderPassEnv, ReaderTaskset

__all__ = ["ReaderHarness", "ReaderPassEnv", "ReaderTaskset"]
