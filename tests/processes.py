"""A check that a process has ended."""

from __future__ import annotations

import time
from pathlib import Path


def gone(process: int, seconds: float = 60) -> bool:
    """Return True if the process ends within a grace period."""
    for _ in range(int(seconds / 0.05)):
        try:
            if Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False
