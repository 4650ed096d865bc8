"""Clients by agents' names: `llm:openai/MODEL`, `llm:anthropic/MODEL`, `llm:local/MODEL`, `cassette:FILE`.

`Models` holds the budget, the cassette and the endpoints that the models of a run share. Keys come from the environment
and are sent only to the provider they belong to.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from kbgym.agents.llm.cassette import Cassette, Role
from kbgym.agents.llm.client import Budget, ModelClient
from kbgym.agents.llm.prices import Prices
from kbgym.agents.llm.protocols import Anthropic, OpenAI
from kbgym.agents.llm.redact import Redactor, address
from kbgym.agents.llm.retry import Retry
from kbgym.agents.llm.values import ModelSettings
from kbgym.errors import BadInput


class Service(msgspec.Struct, frozen=True):
    """A provider: the variables of its key and of another address, and its address."""

    key: str
    address: str
    url: str


SERVICES = {
    "openai": Service("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": Service("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "local": Service("KBGYM_LOCAL_API_KEY", "", "http://127.0.0.1:8080/v1"),
}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """A user's choices for the models of a run; None means the provider's or the paper's value."""

    base_url: str | None = None
    concurrency: int = 8
    timeout: float | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    cassette: Path | None = None
    temperature: float | None = None
    effort: str | None = None
    completion: int | None = None


def is_model(name: str) -> bool:
    """Return True if an agent's name is that of a model or a cassette."""
    return name.startswith(("llm:", "cassette:"))


class Models:
    """The models of one run. Use `client` for each role, and `close` at the end."""

    def __init__(self, options: Options | None = None, retry: Retry | None = None) -> None:
        self.options = options or Options()
        if self.options.concurrency < 1:
            raise BadInput(f"concurrency {self.options.concurrency} is not at least 1.")
        keys = [os.environ.get(service.key) for service in SERVICES.values()]
        self._address = address(self.options.base_url)
        self._redact = Redactor([*keys, *self._address.secrets])
        self._retry = retry or Retry()
        self.budget = Budget(self.options.max_cost, self.options.max_tokens)
        self.cassette: Cassette | None = None
        if self.options.cassette is not None:
            self.cassette = Cassette(self.options.cassette, record=True, redact=self._redact)
            self.budget.spent += self.cassette.spent
        self._played: dict[str, Cassette] = {}
        self._clients: dict[str, ModelClient] = {}

    def client(self, name: str, role: Role) -> tuple[ModelClient, ModelSettings]:
        """Return the client and the settings for a role. The same name gives the same client."""
        kind, _, rest = name.partition(":")
        if kind == "cassette" and rest:
            return self._player(rest, role)
        provider, _, model = rest.partition("/")
        if kind != "llm" or provider not in SERVICES or not model:
            raise BadInput(f"there is no model {name!r}; use llm:{{{','.join(SERVICES)}}}/MODEL or cassette:FILE.")
        settings = self._settings(provider, model, role)
        if name not in self._clients:
            self._clients[name] = self._connect(name, provider, model)
        if self.cassette is not None:
            self.cassette.introduce(role, name, msgspec.to_builtins(settings))
        return self._clients[name], settings

    async def close(self) -> None:
        if self.cassette is not None:
            self.cassette.close()

    def _settings(self, provider: str, model: str, role: Role) -> ModelSettings:
        options = self.options
        if role == "judge":
            # Leave room for reasoning: with less, a reasoning model returns an empty verdict, which is invalid.
            return ModelSettings(model, 0.0, "minimal" if provider == "openai" else None, 500)
        return ModelSettings(
            model=model,
            temperature=0.3 if options.temperature is None else options.temperature,
            effort=options.effort or ("low" if provider == "openai" else None),
            max_tokens=options.completion or (2_048 if provider == "local" else 12_000),
        )

    def _connect(self, name: str, provider: str, model: str) -> ModelClient:
        options, where, service = self.options, self._address, SERVICES[provider]
        if where.url is not None and not where.url.startswith(("http://", "https://")):
            raise BadInput(f"base_url {options.base_url!r} does not start with http:// or https://.")
        key = os.environ.get(service.key, "")
        if provider != "local" and not key:
            raise BadInput(f"{name} needs a key: set {service.key} in the environment.")
        prices = Prices(provider, model, where.url)  # known for the provider's own address only
        where = where if where.url else address(os.environ.get(service.address) or service.url)
        timeout = options.timeout or (600.0 if provider == "local" else 120.0)  # seconds; a CPU reads slowly
        given = where, key, timeout, self._redact
        endpoint = Anthropic(*given) if provider == "anthropic" else OpenAI(*given, is_local=provider == "local")
        return ModelClient(name, endpoint, prices, options.concurrency, self._retry, self.cassette, self.budget)

    def _player(self, file: str, role: Role) -> tuple[ModelClient, ModelSettings]:
        if file not in self._played:
            self._played[file] = Cassette(Path(file), record=False, redact=self._redact)
        cassette = self._played[file]
        recorded = cassette.agent(role)
        key = f"cassette:{file}:{recorded.name}"
        if key not in self._clients:
            provider, _, model = recorded.name.removeprefix("llm:").partition("/")
            self._clients[key] = ModelClient(recorded.name, None, Prices(provider, model), cassette=cassette)
        return self._clients[key], msgspec.convert(recorded.settings, ModelSettings)
