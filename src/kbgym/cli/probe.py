"""`kbgym probe` lives beside the exam it feeds."""

from kbgym.cli.exam import probe_command as command

__all__ = ["command"]
