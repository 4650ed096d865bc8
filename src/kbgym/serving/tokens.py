"""Tokens of clients. A file keeps names, roles and hashes; the token itself is shown once.

The file has JSON lines: {"name": ..., "role": ..., "sha256": ...}, and `expires`, the last day or moment a token is
valid. A file that changes is read again at the next request; one that cannot be read lets no client in.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from kbgym.canonical import decode, encode, read_file, write_whole
from kbgym.errors import BadInput
from kbgym.gym.tools import Role
from kbgym.sanitize import safe_text

PREFIX = "kbgym_"


class Client(msgspec.Struct, frozen=True):
    """The owner of a token: a name and a role."""

    name: str
    role: Role


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line of the file."""

    name: Annotated[str, Meta(min_length=1, max_length=60)]
    role: Role
    sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")]
    expires: str = ""

    @property
    def until(self) -> datetime | None:
        """Return the moment the token expires: the one given, or the end of the day given, in UTC."""
        if not self.expires:
            return None
        try:
            moment = datetime.fromisoformat(self.expires)
            if len(self.expires) <= len("2026-12-31"):
                moment += timedelta(days=1)
        except (ValueError, OverflowError):
            raise BadInput(f"{self.expires[:40]!r} is no date; a token expires on a day such as 2026-12-31.") from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Tokens:
    """The tokens of a file. A presented token is compared with every hash in constant time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state = self._look()
        self._entries = _read(path)

    def __len__(self) -> int:
        return len(self._entries)

    def client(self, token: str) -> Client | None:
        """Return the client of a token by the current content of the file, or None."""
        self._follow()
        presented, now, found = _hash(token), datetime.now(UTC), None
        for entry in self._entries:
            if hmac.compare_digest(entry.sha256.lower(), presented) and (entry.until is None or now < entry.until):
                found = Client(entry.name, entry.role)
        return found

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _follow(self) -> None:
        state = self._look()
        if state == self._state:
            return
        self._state = state
        try:
            self._entries = _read(self._path)
        except BadInput as error:
            self._entries = ()
            logging.getLogger("kbgym").error("all tokens are rejected: %s", safe_text(str(error)))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _read(path: Path) -> tuple[_Entry, ...]:
    """Read the tokens of a file. Messages about bad lines never repeat their content."""
    entries: dict[str, _Entry] = {}
    for number, line in enumerate(read_file(path).splitlines(), 1):
        try:
            entry = decode(line, _Entry)
        except msgspec.DecodeError:
            raise BadInput(f"{path}, line {number}: no token; name, role and sha256 are wanted.") from None
        if entry.name in entries:
            raise BadInput(f"{path}: the name {entry.name!r} occurs twice; each client has one token.")
        _ = entry.until  # raises if it is no date
        entries[entry.name] = entry
    return tuple(entries.values())


def new_token(path: Path, name: str, role: Role, expires: str = "") -> str:
    """Create a token, add its hash to the file and return the token, which is not stored anywhere."""
    if not name or len(name) > 60 or not name.isprintable():
        raise BadInput(f"a client's name is 1 to 60 printable characters, not {name[:60]!r}.")
    token = PREFIX + secrets.token_urlsafe(32)
    entry = _Entry(name, role, _hash(token), expires)
    _ = entry.until
    with _locked(path):
        there = path.exists()
        if there and any(known.name == name for known in _read(path)):
            raise BadInput(f"{path} has a token for {name!r} already; revoke it first, or choose another name.")
        before = read_file(path) if there else b""
        _replace(path, before + (b"\n" if before and not before.endswith(b"\n") else b"") + encode(entry) + b"\n")
    return token


def revoke(path: Path, name: str) -> None:
    """Remove a client's token from the file. A running server notices at the next request."""
    with _locked(path):
        known = [entry.name for entry in _read(path)]
        if name not in known:
            raise BadInput(f"{path} has no token for {name!r}; it has {', '.join(known) or 'none'}.")
        lines = read_file(path).splitlines(keepends=True)
        _replace(path, b"".join(line for line, of in zip(lines, known, strict=True) if of != name))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock beside the file, so that one process at a time reads, changes and writes it."""
    try:
        handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise BadInput(f"cannot write the tokens {path}: {error.strerror}.") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, data: bytes) -> None:
    """Replace the file atomically, readable by its owner only under any umask."""
    if path.is_symlink():
        raise BadInput(f"cannot write the tokens {path}: it is a symbolic link.")
    try:
        with write_whole(path) as scratch:
            handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        raise BadInput(f"cannot write the tokens {path}: {error.strerror}.") from error
