"""A cassette file of requests and replies, so that a resumed run repeats no paid request and can be replayed offline.

    {"kind":"cassette","schema":1}
    {"kind":"agent","role":"reader","name":"llm:openai/...","settings":{...}}
    {"kind":"part","id":"3f2a...","value":...}                   a system prompt, a tool set or a message, once each
    {"kind":"reply","request":"<hash>","parts":[...],"reply":{...}}

A reply is found by its request's hash; the k-th time a process makes the same request it gets the k-th reply. Lines are
only appended, each in one write, before the reply is used; a torn last line is cut off. `redact` removes keys from
every line.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any, Literal

import msgspec

from kbgym.agents.llm.redact import Redactor
from kbgym.agents.llm.values import Reply, Request, Usage
from kbgym.canonical import Decoder, digest_of, encode, open_file
from kbgym.errors import BadInput, Damaged

SCHEMA = 1
MOST = 1 << 30
Role = Literal["reader", "curator", "judge", "writer"]


class _Header(msgspec.Struct, frozen=True, tag_field="kind", tag="cassette"):
    schema: int


class Recorded(msgspec.Struct, frozen=True, tag_field="kind", tag="agent"):
    """The agent of a role: everything required to repeat its requests."""

    role: Role
    name: str
    settings: dict[str, Any]


class _Part(msgspec.Struct, frozen=True, tag_field="kind", tag="part"):
    id: str
    value: Any


class _Taken(msgspec.Struct, frozen=True, tag_field="kind", tag="reply"):
    request: str
    model: str
    system: str
    tools: str
    messages: tuple[str, ...]
    reply: Reply
    tail: str = ""


_decoder: Decoder[_Header | Recorded | _Part | _Taken] = Decoder(_Header | Recorded | _Part | _Taken)


class Exchange(Request, frozen=True, kw_only=True):
    """One recorded request, reassembled, with its reply."""

    reply: Reply


class Cassette:
    """A cassette file. With `record`, new replies are appended; without, it only plays back and is never written."""

    def __init__(self, path: Path, record: bool = True, redact: Redactor | None = None) -> None:
        self.path = path
        self.record = record
        self.spent = Usage()
        self._redact = redact or Redactor()
        self._agents: list[Recorded] = []
        self._parts: dict[str, Any] = {}
        self._taken: list[_Taken] = []
        self._by_request: dict[str, list[Reply]] = {}
        self._next: dict[str, int] = {}
        self._file = self._open() if record else None
        try:
            length = self._load()
        except BaseException:
            if self._file is not None:
                os.close(self._file)
            raise
        if self._file is not None:
            os.ftruncate(self._file, length)
            if not length:
                self._write(_Header(SCHEMA))

    # -- playing back ---------------------------------------------------------------------------------------------

    def play(self, request: str) -> Reply | None:
        """Return the next recorded reply to a request, by its hash, or None."""
        replies, turn = self._by_request.get(request, []), self._next.get(request, 0)
        if turn >= len(replies):
            return None
        self._next[request] = turn + 1
        return replies[turn]

    def holds(self, request: str) -> bool:
        """Return True if the cassette has another reply to a request, by its hash."""
        return self._next.get(request, 0) < len(self._by_request.get(request, ()))

    def agent(self, role: Role) -> Recorded:
        """Return the agent that was recorded in a role; the last one if there were several."""
        found = [recorded for recorded in self._agents if recorded.role == role]
        if not found:
            raise BadInput(f"{self.path} holds no recording of a {role}.")
        return found[-1]

    @property
    def exchanges(self) -> list[Exchange]:
        return [self._exchange(taken) for taken in self._taken]

    def _exchange(self, taken: _Taken) -> Exchange:
        """Return a reply with the parts of its request."""
        try:
            texts = {name: self._parts[getattr(taken, name)] for name in ("system", "tools")}
            messages = [self._parts[id] for id in taken.messages]
            fields = {"model": taken.model, **texts, "messages": messages, "tail": taken.tail, "reply": taken.reply}
            return msgspec.convert(fields, Exchange)
        except (KeyError, msgspec.ValidationError):
            raise Damaged(f"{self.path}: a reply refers to a part that is not there or does not fit.") from None

    def __len__(self) -> int:
        return len(self._taken)

    # -- recording ------------------------------------------------------------------------------------------------

    def introduce(self, role: Role, name: str, settings: dict[str, Any]) -> None:
        """Record the agent of a role, once."""
        recorded = Recorded(role, name, settings)
        if self.record and recorded not in self._agents[-3:]:
            self._agents.append(recorded)
            self._write(recorded)

    def take(self, hash: str, request: Request, reply: Reply) -> None:
        """Record a new reply. When this returns, the line has been handed to the operating system."""
        block: list[msgspec.Struct] = []
        taken = _Taken(
            request=hash,
            model=request.model,
            system=self._part(request.system, block),
            tools=self._part(list(request.tools), block),
            messages=tuple(self._part(message, block) for message in request.messages),
            reply=reply,
            tail=request.tail,
        )
        self._write(*block, taken)
        self._remember(taken)
        # The reply just recorded is the one this process has just used.
        self._next[hash] = self._next.get(hash, 0) + 1

    def close(self) -> None:
        """Close the file; nothing more can be recorded."""
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None

    def _part(self, value: Any, block: list[msgspec.Struct]) -> str:
        id = digest_of(value)[:24]
        if id not in self._parts:
            self._parts[id] = msgspec.to_builtins(value)
            block.append(_Part(id, self._parts[id]))
        return id

    def _remember(self, taken: _Taken) -> None:
        self._taken.append(taken)
        self._by_request.setdefault(taken.request, []).append(taken.reply)
        self.spent += msgspec.structs.replace(Usage.of(taken.reply), sent=())

    def _write(self, *lines: msgspec.Struct) -> None:
        assert self._file is not None, "the cassette is closed"
        text = "".join(self._redact(encode(line).decode()) + "\n" for line in lines)
        view = memoryview(text.encode())
        while view:
            view = view[os.write(self._file, view) :]

    # -- the file -------------------------------------------------------------------------------------------------

    def _open(self) -> int:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Do not follow a link, which a foreign folder may contain, and do not open a pipe, which would block.
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
            file = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise BadInput(f"cannot write {self.path}: {error.strerror}.") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise BadInput(f"{self.path} is being recorded by another process.") from None
        return file

    def _load(self) -> int:
        """Read every complete line and return their total size in bytes."""
        length = 0
        try:
            with open_file(self.path) as lines:
                if os.fstat(lines.fileno()).st_size > MOST:
                    raise BadInput(f"{self.path} has more than {MOST:,} bytes, too many for a cassette.")
                for number, line in enumerate(lines, 1):
                    if not line.endswith(b"\n"):
                        if number == 1 and not encode(_Header(SCHEMA)).startswith(line):
                            raise Damaged(f"{self.path}, line 1: it is no cassette.")
                        break
                    self._line(number, line)
                    length += len(line)
        except OSError as error:
            raise BadInput(f"cannot read {self.path}: {error.strerror}.") from error
        if not self.record and not length:
            raise Damaged(f"{self.path} is empty; a cassette starts with its header line.")
        return length

    def _line(self, number: int, line: bytes) -> None:
        try:
            value = _decoder.decode(line)
        except msgspec.DecodeError as error:
            raise Damaged(f"{self.path}, line {number}: {error}") from None
        if (number == 1) != isinstance(value, _Header):
            raise Damaged(f"{self.path}, line {number}: a cassette has one header line, its first.")
        match value:
            case _Header(schema) if schema != SCHEMA:
                raise BadInput(f"{self.path} has schema {schema}; this version reads {SCHEMA}.")
            case Recorded():
                self._agents.append(value)
            case _Part(id, part):
                self._parts[id] = part
            case _Taken():
                self._remember(value)
