"""Options, cost forecast and running total of verbs that may call a paid model."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kbgym.agents.external.command_line import USAGE_FROM, is_command
from kbgym.agents.llm.values import Reply, Request, Usage
from kbgym.canonical import encode
from kbgym.cli.settings import flags, options
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.sanitize import counted, safe_text

if TYPE_CHECKING:
    from kbgym.agents.llm.client import Budget
    from kbgym.agents.llm.connect import Models
    from kbgym.agents.llm.prices import Prices
    from kbgym.training.run import Settings


CHARACTERS = 4  # per token, approximately
Plan = tuple[str, dict[str, int]]  # agents, and the number of their passes of each kind


# The options and settings of verbs that may call a model.
spending_options = flags(
    options("max_cost"),
    click.option("--yes", is_flag=True, help="Spend without asking first."),
    options("max_tokens", "base_url", "temperature", "effort", "usage_from", "concurrency"),
)


class Spending:
    """The values of the spending flags."""

    def __init__(self, given: dict[str, Any]) -> None:
        """Take this module's flags from all flags of a verb; a verb without them cannot spend anything."""
        names = ("base_url", "max_cost", "max_tokens", "temperature", "effort")
        self._options = {name: given.pop(name, None) for name in names}
        self._options["concurrency"] = self.concurrency = given.pop("concurrency", 1)
        self._yes: bool = given.pop("yes", False)
        if path := given.pop("usage_from", None):
            os.environ[USAGE_FROM] = path  # with the other rules for commands
        self._budget: Budget | None = None

    @contextmanager
    def models(self, names: Iterable[str], cassette: Path | None) -> Iterator[Models | None]:
        """Yield the models among these names and close them at the end; None if there are none.

        All agents of a verb share one budget, even with several cassettes.
        """
        from kbgym.api.factory import models_for

        with models_for(names, **self._options, cassette=cassette) as made:
            if made is not None:
                if self._budget is not None:
                    self._budget.spent += made.budget.spent
                    made.budget = self._budget
                self._budget = made.budget
            yield made

    def confirm_all(self, plans: Iterable[Plan], each: str = "") -> None:
        """Forecast the cost of all players and ask once, unless told not to; replaying a cassette is free.

        `each` names the unit of the cost.
        """
        passes: dict[str, Counter[str]] = {}
        for name, some in plans:
            if name.startswith("llm:") and any(some.values()):
                passes.setdefault(name, Counter()).update(some)
        if passes:
            from kbgym.agents.llm.prices import forecast

            costs = {name: forecast(self._prices(name), dict(of)) for name, of in passes.items()}
            lines = [f"{name}: {cost}{f', {each}' if each else ''}" for name, cost in costs.items()]
            self._go_on(lines, all(map(_is_local, costs)))

    def confirm_requests(self, name: str, requests: Sequence[Request], completion: int) -> None:
        """Forecast the cost of known requests, each answered in about `completion` tokens, and ask once."""
        if not name.startswith("llm:") or not requests:
            return
        prices = self._prices(name)
        sent = (encode((request.system, request.messages, request.tools)) for request in requests)
        prompts = [len(one) // CHARACTERS for one in sent]
        costs = [prices.cost(Reply(prompt=prompt, completion=completion)) or 0.0 for prompt in prompts]
        money = f"about ${sum(costs):,.2f}" if prices.known else "price unknown"
        tokens = sum(prompts) + completion * len(prompts)
        basis = f"{CHARACTERS} characters a token, no corrections"
        said = f"{counted(len(requests), 'request')}, about {tokens:,} tokens, {money} ({basis}; {prices.table})"
        self._go_on([f"{name}: {said}"], _is_local(name))

    def _prices(self, name: str) -> Prices:
        from kbgym.agents.llm.prices import Prices

        provider, _, model = name.removeprefix("llm:").partition("/")
        return Prices(provider, model, self._options["base_url"])

    def _go_on(self, costs: Sequence[str], is_local: bool) -> None:
        for line in costs:
            click.echo(safe_text(line), err=True)
        if self._yes:
            return
        if not sys.stdin.isatty():
            does = "call a local model" if is_local else "spend money"
            raise BadInput(f"this would {does}; use --yes to continue without confirmation.")
        click.confirm("Go on?", abort=True, err=True)


def _is_local(name: str) -> bool:
    return name.startswith("llm:local/")


def training_plan(settings: Settings, lessons: int, exams: int) -> list[Plan]:
    """Return the agents and the number of their passes in a training of this many lessons and exam passes."""
    backward = "backward class" if settings.strategy == "class" else "backward"
    return [
        (settings.reader, {"forward": lessons, "exam": exams}),
        (settings.curator, {backward: lessons}),
        (settings.judge, {"judgement": lessons}),
    ]


def used_by_commands(names: Iterable[str], passes: Iterable[dict[str, Any] | None]) -> tuple[dict[str, Any], str]:
    """Return the usage that external programs reported, as a result and as a sentence."""
    if not any(is_command(name) for name in names):
        return {}, ""
    told = list(passes)
    found = [msgspec.convert(one, Usage) for one in told if one]
    total = sum(found[1:], found[0]) if found else None
    if total is None:
        return {"used": None}, "\nWhat the program used is unknown; --usage-from says where it tells."
    money = f"${total.cost:,.4f}" if total.cost is not None else "money unknown"
    some = f" in {len(found)} of {len(told)} passes, the others unknown" if len(found) < len(told) else ""
    result = {"prompt": total.prompt, "completion": total.completion, "cost": total.cost, "passes": len(found)}
    return {"used": result}, f"\nThe program says it used {total.tokens:,} tokens ({money}){some}."


def with_spend(tick: ProgressCallback, models: Models | None) -> ProgressCallback:
    """Return the callback with the spending so far in its note."""
    if models is None:
        return tick

    def spending(done: int, total: int, note: str) -> None:
        spent = models.budget.spent
        money = "price unknown" if spent.cost is None else f"${spent.cost:.2f}"
        tick(done, total, f"{note}  {spent.tokens:,} tokens  {money}")

    return spending
