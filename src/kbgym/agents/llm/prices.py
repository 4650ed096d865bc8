"""Cost of requests, from the offline table bundled with genai-prices, and forecasts before spending.

The cost of a model without a known price is None, never zero.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from kbgym.agents.llm.values import Reply
from kbgym.sanitize import counted


class Prices:
    """The price of one model at one provider."""

    def __init__(self, provider: str, model: str, base_url: str | None = None) -> None:
        self.model, self.known = model, False
        self._where = {"provider_api_url": base_url} if base_url else {"provider_id": provider}
        self._when = datetime.now(UTC)  # one date for a whole run: prices must not change at midnight within it
        try:
            import genai_prices as prices
        except ImportError:
            self.table = "no price table (genai-prices is not installed)"
            return
        self.table = f"genai-prices {prices.__version__}"
        self._prices: Any = prices
        with suppress(LookupError):
            self.known = provider != "local" and bool(self._calculate(1, 0, 0, 1))

    def cost(self, reply: Reply) -> float | None:
        """Return the cost of one reply in dollars, or None if the model's price is unknown."""
        if not self.known:
            return None
        return float(self._calculate(reply.prompt, reply.cached, reply.cache_writes, reply.completion).total_price)

    def _calculate(self, prompt: int, cached: int, written: int, completion: int) -> Any:
        cache = {"cache_read_tokens": cached or None, "cache_write_tokens": written or None}
        usage = self._prices.Usage(input_tokens=prompt, output_tokens=completion, **cache)
        return self._prices.calc_price(usage, self.model, genai_request_timestamp=self._when, **self._where)


class Forecast(msgspec.Struct, frozen=True):
    """The expected usage of a run. `basis` is the source of the tokens a pass, `table` that of the price."""

    passes: int
    tokens: int
    cost: float | None
    basis: str
    table: str

    def __str__(self) -> str:
        money = "price unknown" if self.cost is None else f"about ${self.cost:,.2f}"
        return f"{counted(self.passes, 'pass')}, about {self.tokens:,} tokens, {money} ({self.basis}; {self.table})"


# Tokens of one pass: prompt, cached part of the prompt, completion. An exam pass takes five to six actions.
# Training questions are the paper's: 94,000 tokens, forward and backward. A `class` curator uses its whole budget.
TYPICAL = {
    "exam": (9_500, 6_000, 1_200),
    "forward": (20_000, 14_000, 2_000),
    "backward": (67_000, 52_000, 5_000),
    "backward class": (120_000, 100_000, 5_000),
    "summary": (1_000, 0, 120),  # of up to 60 sentences
    "judgement": (1_000, 0, 200),  # an assumption: one near-duplicate per lesson, two sentences and a verdict
}


def forecast(prices: Prices, passes: dict[str, int]) -> Forecast:
    """Return the cost of this many passes of each kind at typical token counts."""
    tokens, cost = 0, 0.0
    for kind, count in passes.items():
        prompt, cached, completion = TYPICAL[kind]
        tokens += count * (prompt + completion)
        cost += count * (prices.cost(Reply(prompt=prompt, cached=cached, completion=completion)) or 0.0)
    known = cost if prices.known else None
    return Forecast(sum(passes.values()), tokens, known, "typical tokens a pass", prices.table)
