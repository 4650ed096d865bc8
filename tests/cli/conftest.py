"""Helpers that call the verbs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kbgym.cli.main import run

Kbgym = Callable[..., tuple[int, str, str]]


@pytest.fixture
def kbgym(capfd: pytest.CaptureFixture[str]) -> Kbgym:
    """A verb called as from a shell: its exit code, what it printed, what it said."""

    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            run([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    return call
