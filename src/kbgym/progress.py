"""The progress callback that every long operation accepts."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[int, int, str], None]
"""Called with the number of items done, the total, and a short status text."""
