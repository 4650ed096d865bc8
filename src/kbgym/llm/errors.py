"""What can go wrong between kbgym and a model, and what each error means for the run.

    Failed
    ├── Outage       the provider cannot be reached or keeps failing: the run stops, nothing is scored, resume later.
    ├── Rejected     the provider refuses: a wrong key, an unknown model. Trying again would not help.
    └── CapReached   --max-cost or --max-tokens: the run stops before the next request.

    Transient, RefusedSetting    between a provider and the client only; never seen outside this package.
    TooLong                      the prompt does not fit the model; the pass ends as the agent's own failure.

A reply that makes no sense is none of these: see `agents/llm.py`. No message holds a key (`redact.py`), and errors are
raised without their cause, because a provider's exception carries the request and its headers.
"""

from __future__ import annotations

from kbgym.errors import Failed


class Outage(Failed):
    """Bounded retries are used up."""


class Rejected(Failed):
    """The provider says no, and would again."""


class CapReached(Failed):
    """The next request would go past what may be spent."""


class TooLong(Exception):
    """The prompt is longer than the model's context."""


class Transient(Exception):
    """Worth another try. `limited` is a 429, `lost` no reply at all; `after` is how long the provider asks to wait."""

    def __init__(self, message: str, limited: bool = False, after: float | None = None, lost: bool = False) -> None:
        super().__init__(message)
        self.limited = limited
        self.after = after
        self.lost = lost


class RefusedSetting(Exception):
    """The provider does not take one of the settings: the client leaves it out from now on."""

    def __init__(self, named: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.named = named
