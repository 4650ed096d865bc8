"""`python -m kbgym` is the command `kbgym`."""

from kbgym.cli.main import run

run()
