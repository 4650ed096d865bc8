"""The threat table of docs/security.md: every test it names is there, and every attack stands in it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_line_has_its_test_and_every_attack_its_line() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [line for line in page.partition("| --- | --- |")[2].splitlines() if line.startswith("|")]
    assert len(rows) > 20
    named = set()
    for row in rows:
        tests = re.findall(r"`(tests/[^`]+)`", row)
        assert tests, row
        assert all((ROOT / test).is_file() for test in tests), row
        named |= set(tests)
    attacks = {str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "attacks").glob("test_*.py")}
    assert attacks - named == {"tests/attacks/test_attack_table.py"}
