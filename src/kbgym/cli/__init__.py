"""The command line; its settings, flags, verbs and longer texts are TOML files of this package."""

import tomllib
from pathlib import Path
from typing import Any


def read_table(name: str) -> dict[str, Any]:
    """Read a TOML file of this package."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
