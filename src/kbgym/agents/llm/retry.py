"""What can go wrong between kbgym and a model, and what each error means for the run.

    Failed
    ├── Outage       the provider cannot be reached or keeps failing: the run stops, nothing is scored, resume later.
    ├── Rejected     the provider refuses: a wrong key, an unknown model. Trying again would not help.
    └── CapReached   --max-cost or --max-tokens: the run stops before the next request.

    Transient, RefusedSetting    between a provider and the client only; never seen outside this package.
    TooLong                      the prompt does not fit the model; the pass ends as the agent's own failure.

A reply that makes no sense is none of these: see `agents/llm.py`. No message holds a key (`redact.py`), and errors are
raised without their cause, because a provider's exception carries the request and its headers.


The only place that tries a request again: bounded, with back-off, jitter and Retry-After.

The providers' own retries are switched off. When this gives up, the error is an `Outage`: the run stops and nothing is
scored.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from kbgym.errors import Failed, Missing


class Outage(Failed):
    """Bounded retries are used up."""


class Rejected(Failed):
    """The provider says no, and would again."""


class CapReached(Failed):
    """The next request would go past what may be spent."""


class TooLong(Exception):
    """The prompt is longer than the model's context."""


class Transient(Exception):
    """Worth another try. `limited` is a 429, `lost` no reply at all; `after` is how long the provider asks to wait."""

    def __init__(self, message: str, limited: bool = False, after: float | None = None, lost: bool = False) -> None:
        super().__init__(message)
        self.limited = limited
        self.after = after
        self.lost = lost


class RefusedSetting(Exception):
    """The provider does not take one of the settings: the client leaves it out from now on."""

    def __init__(self, named: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.named = named


T = TypeVar("T")


class Retry:
    """How often and how long: at most `attempts` tries and `total` seconds; waits grow from `first` to `longest`.

    An address that has never answered is given up after `hopeless` tries: it is more likely wrong than down.
    """

    def __init__(
        self,
        attempts: int = 12,
        total: float = 900.0,
        first: float = 0.5,
        longest: float = 60.0,
        hopeless: int = 4,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.attempts = attempts
        self.total = total
        self.first = first
        self.longest = longest
        self.hopeless = hopeless
        self._sleep = sleep
        # Only spreads waiting clients over time; nothing that is kept depends on it.
        self._random = random.Random()

    async def run(self, once: Callable[[], Awaitable[T]], to_whom: str, known: bool = True) -> tuple[T, int]:
        """What `once` returns, and how many tries failed before. `known` is whether it has ever answered."""
        try:
            from tenacity import AsyncRetrying, RetryError, retry_if_exception_type, stop_after_attempt
        except ImportError:
            raise Missing("language models need tenacity: pip install 'kbgym[models]'.") from None

        waited = 0.0

        def wait(state: Any) -> float:
            nonlocal waited
            error = state.outcome.exception()
            if not known and error.lost and state.attempt_number >= self.hopeless:
                raise _given_up(to_whom, state.attempt_number, error)
            pause = self._pause(state.attempt_number, error)
            if waited + pause > self.total:
                raise _given_up(to_whom, state.attempt_number, error)
            waited += pause
            return pause

        tries = AsyncRetrying(
            retry=retry_if_exception_type(Transient),
            stop=stop_after_attempt(self.attempts),
            wait=wait,
            sleep=self._sleep,
        )
        failed = -1

        async def counted() -> T:
            nonlocal failed
            failed += 1
            return await once()

        try:
            return await tries(counted), failed
        except RetryError as error:
            raise _given_up(to_whom, self.attempts, error.last_attempt.exception()) from None

    def _pause(self, attempt: int, error: BaseException | None) -> float:
        backoff = min(self.longest, self.first * 2.0 ** (attempt - 1))
        asked = error.after if isinstance(error, Transient) else None
        if asked is None:
            return self._random.uniform(backoff / 2, backoff)
        # A little more than asked, so that everybody who was turned away does not come back at once.
        return asked + self._random.uniform(0, min(backoff, 1.0))


def _given_up(to_whom: str, tries: int, error: BaseException | None) -> Outage:
    return Outage(
        f"{to_whom} did not answer after {tries} {'try' if tries == 1 else 'tries'} (last: {error}); "
        "nothing was scored, run the same command again to go on."
    )


def retry_after(headers: Any) -> float | None:
    """The seconds a reply's headers ask to wait, if they do."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        try:
            return max(0.0, float(value))
        except ValueError:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
