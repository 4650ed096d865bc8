"""A provider's refusals as our errors. All providers of this family say much the same, so one table serves all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from kbgym.agents.llm.redact import Redactor
from kbgym.agents.llm.retry import RefusedSetting, Rejected, TooLong, Transient, retry_after
from kbgym.canonical import decode

_TOO_LONG = re.compile(
    r"context[ _](length|window|size)|maximum context|too many tokens|(prompt|input) is too long|exceed_context", re.I
)
# llama.cpp answers 500 where a model's call could not be read: the model's doing, not an outage.
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


class Unreadable(Exception):
    """The server could not read what its own model wrote; the message says why."""


def refused(status: int, headers: Mapping[str, str], text: str, redact: Redactor, where: str) -> Exception:
    """What a reply with an error status means to us."""
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
    """The settings a 400 names: the one it points at first, then those in its words."""
    pointed = str(inner.get("param") or "").partition(".")[0] if isinstance(inner, dict) else ""
    worded = [setting for setting in _SETTINGS if re.search(rf"\b{setting}\b", message)]
    return tuple(dict.fromkeys([pointed] * (pointed in _SETTINGS) + worded))
