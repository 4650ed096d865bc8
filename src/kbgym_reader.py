"""The module that verifiers finds under the name `kbgym-reader`; it is `kbgym.integrations.verifiers_reader`."""

from kbgym.integrations.verifiers_reader import ReaderHarness, ReaderPassEnv, ReaderTaskset

__all__ = ["ReaderHarness", "ReaderPassEnv", "ReaderTaskset"]
