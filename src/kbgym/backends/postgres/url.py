"""URLs of stores in PostgreSQL, which name a server, a store on it and an iteration.

    postgresql://ada:secret@db.example.org:5432/knowledge?store=cities&sslmode=require#57

`store` names one of several stores of a database: the PostgreSQL schema `kbgym_cities`, or `kbgym` without it. The
iteration is `#57`, or `@57` at the very end. With `documents=held` a process holds all documents in memory, with
`documents=read` it reads them on demand. All other parameters are passed to libpq. This module opens no connection.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

from kbgym.errors import BadInput
from kbgym.sanitize import number_in

_UNREADABLE = "the store's URL cannot be read; special characters in a user's name or password are written as %2F."
HIDDEN = "[password]"
_OWN = ("store", "documents")
_HELD = {"": None, "held": True, "read": False}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_SECRETS = ("password", "sslpassword")


class DatabaseAddress(msgspec.Struct, frozen=True):
    """The parts of a URL. `server` is for libpq and must never be shown; `shown` has no password."""

    server: str
    schema: str
    shown: str
    at: int | None = None
    held: bool | None = None
    secrets: tuple[str, ...] = ()

    def redact(self, text: str) -> str:
        """Return a message without passwords."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def parse(url: str) -> DatabaseAddress:
    """Return the parts of a URL. Raise BadInput if it cannot be parsed."""
    body, _, at = url.partition("#")
    if not at and (match := re.fullmatch(r"(\w+://[^/]*/.*)@(\d+)", body)):
        body, at = match[1], match[2]
    try:
        parts = urlsplit(body)
        secret = parts.password
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        where = f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or query.get("host", "")
    except ValueError:  # its message may contain part of a password
        raise BadInput(_UNREADABLE) from None
    path, store = parts.path, query.get("store", "")
    if "@" in path:
        raise BadInput(_UNREADABLE)
    number = number_in(at)
    if at and number is None:
        raise BadInput(f"{at[:40]!r} is not an iteration; a store's URL ends in a number such as #57.")
    if store and not _NAME.fullmatch(store):
        raise BadInput(f"{store!r} is not a valid store name; use a letter, then lower-case letters, digits and _.")
    documents = query.get("documents", "")
    if documents not in _HELD:
        raise BadInput(f"documents={documents[:40]} in a store's URL is not known; use held or read.")
    kept = [pair for pair in parts.query.split("&") if pair and pair.partition("=")[0] not in _OWN]
    user = f"{parts.username}@" if parts.username else ""
    shown = f"postgresql://{user}{where}{path}" + (f"?store={store}" if store else "")
    found = [secret, *(query.get(name) for name in _SECRETS)]
    secrets = {form for one in found if one for form in (one, unquote(one), quote(unquote(one), safe=""))}
    server = f"postgresql://{parts.netloc}{path}" + (f"?{'&'.join(kept)}" if kept else "")
    schema = f"kbgym_{store}" if store else "kbgym"
    longest_first = tuple(sorted(secrets, key=lambda one: (-len(one), one)))
    return DatabaseAddress(server, schema, shown, int(at) if at else None, _HELD[documents], longest_first)
