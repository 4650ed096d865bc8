"""Redaction of keys in all output: errors, cassettes, traces, reports.

Known secrets are those given, those in the environment, and strings shaped like keys.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

import msgspec

HIDDEN = "[key]"
# Shorter values ("none", "test") are not secrets, and replacing them would corrupt ordinary text.
SHORTEST = 8
_SECRET_NAME = re.compile(r"(_KEY|_TOKEN|_SECRET|_PASSWORD)$")
_SHAPES = re.compile(
    r"\bsk-[A-Za-z0-9_-]{8,}|(?i:\bbearer\s+)[A-Za-z0-9._~+/-]{8,}=*|\bhf_[A-Za-z0-9]{16,}"
    r"|(?<=://)[^/\s@:]+:[^/\s@]+(?=@)"
)


class Redactor:
    """Replaces every known secret, and everything shaped like one, with `[key]`."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        found = {secret for secret in secrets if secret} | {
            value for name, value in os.environ.items() if _SECRET_NAME.search(name)
        }
        found = {secret for secret in found if len(secret) >= SHORTEST}
        found |= {written for secret in found for written in (json.dumps(secret)[1:-1], quote(secret, safe=""))}
        # Longest first: a secret may be part of another.
        self._secrets = sorted(found, key=lambda secret: (-len(secret), secret))

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return _SHAPES.sub(HIDDEN, text)


class Address(msgspec.Struct, frozen=True):
    """A base URL in parts: the address, and the credentials and query, which must not be shown."""

    url: str | None
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    secrets: tuple[str, ...] = ()


def address(url: str | None) -> Address:
    """Split off a URL's user and password, which become a header, and its query."""
    if not url:
        return Address(None)
    parts = urlsplit(url)
    headers = {}
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    query = dict(parse_qsl(parts.query))
    secrets = (parts.password or "", *query.values(), *(value.split()[-1] for value in headers.values()))
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return Address(shown, query, headers, secrets)
