"""Failures between kbgym and a model, their consequences for a run, and retries.

    Failed
    ├── Outage       the provider cannot be reached or keeps failing: the run stops, nothing is scored, resume later.
    ├── Rejected     the provider refuses: a wrong key, an unknown model. A retry would not help.
    └── CapReached   --max-cost or --max-tokens: the run stops before the next request.

    Transient, RefusedSetting, Unreadable    between an endpoint and the client only; never seen outside this package.
    TooLong                                  the prompt does not fit the model; the pass ends as the agent's failure.

No message contains a key (`redact.py`). Errors are raised without their cause, because exceptions of the HTTP library
carry the request and its headers.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable
from email.utils import mktime_tz, parsedate_tz
from typing import Any, TypeVar

import msgspec

from kbgym.errors import Failed


class Outage(Failed):
    """All retries failed."""


class Rejected(Failed):
    """The provider rejects the request, and would reject it again."""


class CapReached(Failed):
    """The next request would exceed the budget."""


class TooLong(Exception):
    """The prompt is longer than the model's context."""


class Transient(Exception):
    """A failure worth a retry. `limited` is a 429, `lost` a missing response; `after` is the provider's Retry-After."""

    def __init__(self, message: str, limited: bool = False, after: float | None = None, lost: bool = False) -> None:
        super().__init__(message)
        self.limited = limited
        self.after = after
        self.lost = lost


class RefusedSetting(Exception):
    """The provider rejects one of the settings; the endpoint omits it from then on."""

    def __init__(self, named: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.named = named


class Unreadable(Exception):
    """The server could not parse its own model's output; the message gives the reason."""


T = TypeVar("T")


class Retry(msgspec.Struct):
    """At most `attempts` tries and `total` seconds of waiting, with exponential back-off, jitter and Retry-After.

    An address that has never answered gets at most `hopeless` tries.
    """

    attempts: int = 12
    total: float = 900.0
    first: float = 0.5
    longest: float = 60.0
    hopeless: int = 4
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self, once: Callable[[], Awaitable[T]], model: str, known: bool = True) -> tuple[T, int]:
        """Return the value of `once` and the number of failed tries. `known`: the model has answered before."""
        waited, tries = 0.0, 0
        while True:
            tries += 1
            try:
                return await once(), tries - 1
            except Transient as error:
                failure = error
            backoff = min(self.longest, self.first * 2.0 ** (tries - 1))
            # Jitter spreads waiting clients over time; no result depends on it.
            low, high = (backoff / 2, backoff) if failure.after is None else (0.0, min(backoff, 1.0))
            wait = (failure.after or 0.0) + random.uniform(low, high)
            attempts = self.attempts if known or not failure.lost else min(self.hopeless, self.attempts)
            if tries >= attempts or waited + wait > self.total:
                raise Outage(
                    f"{model} did not answer after {tries} {'try' if tries == 1 else 'tries'} (last: {failure}); "
                    "nothing was scored, run the same command again to go on."
                )
            await self.sleep(wait)
            waited += wait


def retry_after(headers: Any) -> float | None:
    """Return the delay in seconds that a response's headers request, or None."""
    value = headers.get("retry-after", "")
    if re.fullmatch(r"-?[\d.]+", value):
        return max(0.0, float(value))
    date = parsedate_tz(value)
    return max(0.0, mktime_tz(date) - time.time()) if date else None
