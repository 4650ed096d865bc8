"""What the providers' protocols share: one request at a time over a wire, and learning which settings are refused."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kbgym.llm.errors import RefusedSetting, Rejected
from kbgym.llm.faults import Unreadable
from kbgym.llm.redact import Address, Redactor
from kbgym.llm.transport import Sender, Wire
from kbgym.llm.values import Reply, Request, Sent


def connecting(sdk: Callable[..., Any], address: Address, key: str, timeout: float) -> Callable[[], Any]:
    """Makes clients of an SDK; their own retries are off, see `retry.py`."""
    return lambda: sdk(
        api_key=key,
        base_url=address.url,
        default_headers=address.headers,
        default_query=address.query,
        timeout=timeout,
        max_retries=0,
    )


class Endpoint(ABC):
    """One endpoint of one protocol. `refused` are the settings it does not take: they are left out from then on."""

    effort_name: str  # what the protocol calls the setting

    def __init__(self, sender: Sender, timeout: float, redact: Redactor, where: str) -> None:
        self.where = where
        self.refused: list[str] = []
        self._wire = Wire(sender, timeout, redact, where)
        self._redact = redact

    async def send(self, request: Request) -> Reply:
        """One reply. A setting the server refuses is left out and the request made again."""
        while True:
            sent = self._sent(request)
            body = self._body(request, sent)
            body = {name: value for name, value in body.items() if value is not None and name not in self.refused}
            try:
                return self._read(await self._wire.post(body), request, sent)
            except RefusedSetting as refusal:
                setting = next((name for name in self._settings(refusal.named) if name in body), None)
                if setting is None:
                    raise Rejected(str(refusal)) from None
                self._leave_out(setting)
            except Unreadable as unreadable:
                return Reply(text=str(unreadable), finish="unreadable", sent=sent)

    async def close(self) -> None:
        await self._wire.close()

    def _sent(self, request: Request) -> Sent:
        return Sent(
            model=request.model,
            temperature=None if "temperature" in self.refused else request.temperature,
            effort=None if self.effort_name in self.refused else request.effort,
            max_tokens=request.max_tokens,
            refused=tuple(self.refused),
        )

    @abstractmethod
    def _body(self, request: Request, sent: Sent) -> dict[str, Any]:
        """The request in the protocol's words; what is None or refused is left out later."""

    @abstractmethod
    def _read(self, text: str, request: Request, sent: Sent) -> Reply:
        """The reply in ours."""

    def _settings(self, named: tuple[str, ...]) -> Iterable[str]:
        """The settings a refusal may be about, by the names they have in a body."""
        return named

    def _leave_out(self, setting: str) -> None:
        if setting not in self.refused:
            self.refused.append(setting)


def served(sent: Sent, model: str | None) -> Sent:
    """With the model that answered, by its own account."""
    return msgspec.structs.replace(sent, served=(model or "")[:100])
