"""Keeps keys out of everything that is written or shown: errors, cassettes, traces, reports.

It knows the secrets it is told about, those in the environment, and the shapes keys usually have.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit

HIDDEN = "[key]"
# Shorter values ("none", "test") are no secrets, and replacing them would spoil ordinary text.
SHORTEST = 8
_SECRET_NAME = re.compile(r"(_KEY|_TOKEN|_SECRET|_PASSWORD)$")
_SHAPES = re.compile(
    r"\bsk-[A-Za-z0-9_-]{8,}|(?i:\bbearer\s+)[A-Za-z0-9._~+/-]{8,}=*|\bhf_[A-Za-z0-9]{16,}"
    r"|(?<=://)[^/\s@:]+:[^/\s@]+(?=@)"
)
_CHATTY = ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2", "aiohttp")


class Redactor:
    """Replaces every known secret, and everything shaped like one, by `[key]`."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        found = {secret for secret in secrets if secret} | {
            value for name, value in os.environ.items() if _SECRET_NAME.search(name)
        }
        found = {secret for secret in found if len(secret) >= SHORTEST}
        found |= {written for secret in found for written in (json.dumps(secret)[1:-1], quote(secret, safe=""))}
        # Longest first: one secret may be a part of another.
        self._secrets = sorted(found, key=lambda secret: (-len(secret), secret))

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return _SHAPES.sub(HIDDEN, text)


def shown_url(url: str) -> str:
    """A base URL without user, password, query or fragment."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def url_secrets(url: str | None) -> list[str]:
    """The parts of a URL that may be secret."""
    if not url:
        return []
    parts = urlsplit(url)
    values = [item.partition("=")[2] for item in parts.query.split("&")]
    return [secret for secret in (parts.username, parts.password, parts.query, *values) if secret]


def quiet_libraries() -> None:
    """HTTP libraries log URLs and headers below WARNING: keep them quiet unless somebody has set their level."""
    for name in _CHATTY:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)
