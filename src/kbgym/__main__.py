"""Entry point of `python -m kbgym`, equivalent to the command `kbgym`."""

from kbgym.cli.main import run

run()
