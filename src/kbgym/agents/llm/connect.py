"""Clients by agents' names: `llm:openai/MODEL`, `llm:anthropic/MODEL`, `llm:local/MODEL`, `cassette:FILE`.

`Models` holds the budget, the cassette and the endpoints that the models of a run share. Keys come from the environment
and are sent only to the provider they belong to.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import msgspec

from kbgym.agents.llm import anthropic_api, openai_api
from kbgym.agents.llm.anthropic_api import Anthropic
from kbgym.agents.llm.cassette import Cassette, Role
from kbgym.agents.llm.client import Budget, ModelClient, Provider
from kbgym.agents.llm.openai_api import OpenAI
from kbgym.agents.llm.prices import Prices
from kbgym.agents.llm.redact import Redactor, address, quiet_libraries
from kbgym.agents.llm.retry import Retry
from kbgym.agents.llm.values import ModelSettings
from kbgym.errors import BadInput

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "local": "KBGYM_LOCAL_API_KEY"}
ADDRESSES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
URLS = {"openai": openai_api.URL, "anthropic": anthropic_api.URL, "local": "http://127.0.0.1:8080/v1"}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """A user's choices for the models of a run; None means the provider's or the paper's value."""

    base_url: str | None = None
    concurrency: int = 8
    timeout: float = 120.0
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
        keys = [os.environ.get(variable) for variable in KEYS.values()]
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
        quiet_libraries()

    def client(self, name: str, role: Role) -> tuple[ModelClient, ModelSettings]:
        """Return the client and the settings for a role. The same name gives the same client."""
        kind, _, rest = name.partition(":")
        if kind == "cassette" and rest:
            return self._player(rest, role)
        provider, _, model = rest.partition("/")
        if kind != "llm" or provider not in KEYS or not model:
            raise BadInput(
                f"there is no agent {name!r}; models are llm:openai/MODEL, llm:anthropic/MODEL, llm:local/MODEL "
                "and cassette:FILE."
            )
        settings = self._settings(provider, model, role)
        if name not in self._clients:
            self._clients[name] = self._connect(name, provider, model)
        if self.cassette is not None:
            self.cassette.introduce(role, name, msgspec.to_builtins(settings))
        return self._clients[name], settings

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
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
        options, base_url, where = self.options, self.options.base_url, self._address
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            raise BadInput(f"base_url {base_url!r} does not start with http:// or https://.")
        key = os.environ.get(KEYS[provider])
        if provider != "local" and not key:
            raise BadInput(f"{name} needs a key: set {KEYS[provider]} in the environment.")
        # Prices are known for the provider's own address only.
        prices = Prices(provider, model, where.url)
        where = where if where.url else address(os.environ.get(ADDRESSES.get(provider, "")) or URLS[provider])
        endpoint: Provider
        if provider == "anthropic":
            endpoint = Anthropic(where, key or "", options.timeout, self._redact)
        else:
            kind: Literal["openai", "local"] = "openai" if provider == "openai" else "local"
            endpoint = OpenAI(kind, where, key or "none", options.timeout, self._redact)
        return ModelClient(
            name,
            endpoint,
            prices,
            options.concurrency,
            self._retry,
            self.cassette,
            self.budget,
        )

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


def described(client: ModelClient, settings: ModelSettings, prompts: dict[str, str]) -> dict[str, Any]:
    """Return the description of a model for a run's settings: name, settings, hashes of the prompts."""
    return {"agent": client.name, "settings": msgspec.to_builtins(settings), "prompts": prompts}
