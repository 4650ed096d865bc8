"""The size of the command line, its sections, and the suggestion for a mistyped verb."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from kbgym.cli.main import SECTIONS, VERBS, app


def test_at_most_24_verbs_in_six_sections() -> None:
    assert len(set(VERBS)) == len(VERBS) <= 24 and len(SECTIONS) == 6


@pytest.mark.parametrize(("typed", "meant"), [(["trian"], "train"), (["store", "lgo"], "log")])
def test_a_mistyped_verb_is_corrected(typed: list[str], meant: str) -> None:
    done = CliRunner().invoke(app, typed)
    assert done.exit_code == 2 and repr(meant) in done.output
