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
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec

from kbgym.agents.llm.redact import Redactor
from kbgym.canonical import decode
from kbgym.errors import Failed, Missing


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


class Retry:
    """At most `attempts` tries and `total` seconds of waiting, with exponential back-off, jitter and Retry-After.

    An address that has never answered gets at most `hopeless` tries.
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
        self.attempts, self.total, self.first, self.longest, self.hopeless = attempts, total, first, longest, hopeless
        self._sleep = sleep

    async def run(self, once: Callable[[], Awaitable[T]], model: str, known: bool = True) -> tuple[T, int]:
        """Return the value of `once` and the number of failed tries. `known`: the model has answered before."""
        try:
            from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
        except ImportError:
            raise Missing("language models need tenacity: pip install 'kbgym[models]'.") from None

        def stop(state: RetryCallState) -> bool:
            error: Any = state.outcome.exception() if state.outcome else None
            attempts = self.attempts if known or not error.lost else self.hopeless
            too_long = state.idle_for + state.upcoming_sleep > self.total
            return too_long or state.attempt_number >= min(attempts, self.attempts)

        def give_up(state: RetryCallState) -> T:
            tries = f"{state.attempt_number} {'try' if state.attempt_number == 1 else 'tries'}"
            error = state.outcome.exception() if state.outcome else None
            raise Outage(
                f"{model} did not answer after {tries} (last: {error}); nothing was scored, "
                "run the same command again to go on."
            ) from None

        tries = AsyncRetrying(
            retry=retry_if_exception_type(Transient),
            stop=stop,
            wait=self._wait,
            sleep=self._sleep,
            retry_error_callback=give_up,
        )
        failed = -1

        async def counted() -> T:
            nonlocal failed
            failed += 1
            return await once()

        return await tries(counted), failed

    def _wait(self, state: Any) -> float:
        error = state.outcome.exception()
        backoff = min(self.longest, self.first * 2.0 ** (state.attempt_number - 1))
        # Jitter spreads waiting clients over time; no result depends on it.
        jitter = random.uniform(backoff / 2, backoff) if error.after is None else random.uniform(0, min(backoff, 1.0))
        return float(error.after or 0.0) + jitter


def retry_after(headers: Any) -> float | None:
    """Return the delay in seconds that a response's headers request, or None."""
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


_TOO_LONG = re.compile(
    r"context[ _](length|window|size)|maximum context|too many tokens|(prompt|input) is too long|exceed_context", re.I
)
# llama.cpp answers 500 if it cannot parse a model's call: the model's fault, not an outage.
_UNREADABLE = re.compile(r"failed to parse (input|tool|messages)|parse error", re.I)
_SETTINGS = (
    "max_completion_tokens",
    "max_tokens",
    "parallel_tool_calls",
    "tool_choice",
    "response_format",
    "reasoning_effort",
    "output_config",
    "effort",
    "temperature",
    "tools",
)


def failure_of(status: int, headers: Mapping[str, str], text: str, redact: Redactor, where: str) -> Exception:
    """Return the exception for an error response; providers of this family use much the same responses."""
    try:
        body = decode(text)
    except msgspec.MsgspecError:
        body = text
    inner = body.get("error", body) if isinstance(body, dict) else body
    code = str(inner.get("code") or inner.get("type") or "") if isinstance(inner, dict) else ""
    said = inner.get("message") if isinstance(inner, dict) else inner
    message = redact(" ".join(str(said or "without a reason").split()))[:300]
    if status == 429 and code == "insufficient_quota":
        return Rejected(f"{where} says the account's quota is used up: {message}")
    if status == 429:
        return Transient(f"429: {message}", limited=True, after=retry_after(headers))
    if _TOO_LONG.search(code) or (status < 500 and _TOO_LONG.search(message)):
        return TooLong(message)
    if status >= 500 and _UNREADABLE.search(message):
        return Unreadable(message)
    if status >= 500 or status in (408, 409, 425):
        return Transient(f"{status}: {message}", after=retry_after(headers))
    if status in (401, 403):
        return Rejected(f"{where} refuses the key ({status}): {message}")
    if status == 404:
        return Rejected(f"{where} knows no such model or address (404): {message}")
    named = _named(inner, message)
    if named and status in (400, 422):
        return RefusedSetting(named, f"{where} rejects the request ({status}): {message}")
    return Rejected(f"{where} rejects the request ({status}): {message}")


def _named(inner: Any, message: str) -> tuple[str, ...]:
    """Return the settings that a 400 names: first the one in `param`, then those in its message."""
    pointed = str(inner.get("param") or "").partition(".")[0] if isinstance(inner, dict) else ""
    worded = [setting for setting in _SETTINGS if re.search(rf"\b{setting}\b", message)]
    return tuple(dict.fromkeys([pointed] * (pointed in _SETTINGS) + worded))
