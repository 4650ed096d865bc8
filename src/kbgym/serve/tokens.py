"""Tokens: who may connect, and as what. A file keeps names, roles and hashes; the token itself is shown once.

JSON lines ({"name": ..., "role": ..., "sha256": ...}) or TOML ([[token]] tables with the same keys). A `token` in place
of the hash is taken as it is, for files written by hand. It knows nothing of HTTP.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kbgym.canonical import decode, encode
from kbgym.errors import BadInput
from kbgym.tools import Role

PREFIX = "kbgym_"


class Client(msgspec.Struct, frozen=True):
    """Who a token belongs to."""

    name: str
    role: Role


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    role: Role
    sha256: str = ""
    token: str = ""


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: list[_Entry]


class Tokens:
    """The hashes of every token. A presented one is compared with all of them, in constant time each."""

    def __init__(self, entries: Sequence[tuple[Client, str]]) -> None:
        self._entries = tuple(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def client(self, token: str) -> Client | None:
        """Whose token this is."""
        presented = _hash(token)
        found: Client | None = None
        for client, known in self._entries:
            if hmac.compare_digest(known, presented):
                found = client
        return found


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def read_tokens(path: Path) -> Tokens:
    """The tokens of a file; a message about a bad one never repeats what stands in it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read the tokens {path}: {error.strerror}.") from error
    entries: list[_Entry] = []
    if path.suffix == ".toml":
        try:
            entries = msgspec.convert(tomllib.loads(data.decode()), _Tables).token
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError):
            raise BadInput(f"{path} is no tokens file: [[token]] tables with name, role and sha256.") from None
    else:
        for number, line in enumerate(data.splitlines(), 1):
            try:
                entries.append(decode(line, _Entry))
            except msgspec.DecodeError:
                raise BadInput(f"{path}, line {number}: no token; name, role and sha256 are wanted.") from None
    names: set[str] = set()
    checked: list[tuple[Client, str]] = []
    for entry in entries:
        known = entry.sha256.lower() if entry.sha256 else _hash(entry.token) if entry.token else ""
        if len(known) != 64 or set(known) - set("0123456789abcdef"):
            raise BadInput(f"{path}: the token of {entry.name!r} has neither a sha256 nor a token.")
        if entry.name in names:
            raise BadInput(f"{path}: the name {entry.name!r} stands twice; one token a client.")
        _check_name(entry.name)
        names.add(entry.name)
        checked.append((Client(entry.name, entry.role), known))
    return Tokens(checked)


def new_token(path: Path, name: str, role: Role) -> str:
    """Make a token, add its hash to the file, and give it: it cannot be had again."""
    _check_name(name)
    if path.suffix == ".toml":
        raise BadInput(f"{path} is TOML, which is not written here; name a file of JSON lines.")
    if path.exists() and any(client.name == name for client, _ in read_tokens(path)._entries):
        raise BadInput(f"{path} has a token for {name!r} already; remove its line first, or choose another name.")
    token = PREFIX + secrets.token_urlsafe(32)
    line = encode({"name": name, "role": role, "sha256": _hash(token)}) + b"\n"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "ab") as file:
            file.write(line)
    except OSError as error:
        raise BadInput(f"cannot write the tokens {path}: {error.strerror}.") from error
    return token


def _check_name(name: str) -> None:
    if not name or len(name) > 60 or not name.isprintable():
        raise BadInput(f"a client's name is 1 to 60 printable characters, not {name[:60]!r}.")
