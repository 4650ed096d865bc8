"""The one owner of retries: bounded in number and time, patient as asked, and an outage at the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.agents.llm.retry import Outage, Rejected, Retry, Transient, retry_after
from kbgym.errors import Failed


def tried(errors: Sequence[Exception], known: bool = True, **settings: float) -> tuple[object, list[float]]:
    """Return the result and the waits of a call that fails with these errors in turn and then succeeds."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    left = list(errors)

    async def once() -> str:
        if left:
            raise left.pop(0)
        return "reply"

    async def scene() -> object:
        try:
            return await Retry(sleep=sleep, **settings).run(once, "m", known)  # type: ignore[arg-type]
        except Failed as failure:
            return failure

    return asyncio.run(scene()), waits


def test_the_reply_and_how_many_tries_failed() -> None:
    assert tried([])[0] == ("reply", 0)
    assert tried([Transient("x")] * 3)[0] == ("reply", 3)


@given(st.integers(0, 20), st.integers(1, 12))
def test_tries_and_waits_are_bounded(failures: int, attempts: int) -> None:
    outcome, waits = tried([Transient("x")] * failures, attempts=attempts, first=0.5, longest=8.0)
    assert isinstance(outcome, Outage) == (failures >= attempts)
    assert len(waits) == min(failures, attempts - 1)
    for number, wait in enumerate(waits):
        backoff = min(8.0, 0.5 * 2**number)
        assert backoff / 2 <= wait <= backoff


def test_retry_after_is_honoured_and_an_endless_one_is_an_outage() -> None:
    outcome, (wait,) = tried([Transient("429", limited=True, after=7.0)])
    assert outcome == ("reply", 1)
    assert 7.0 <= wait <= 8.0
    outcome, waits = tried([Transient("429", limited=True, after=4_000.0)])
    assert isinstance(outcome, Outage)
    assert not waits


def test_what_trying_again_cannot_help_is_not_tried_again() -> None:
    outcome, waits = tried([Rejected("no such model")])
    assert isinstance(outcome, Rejected)
    assert not waits


def test_an_address_that_never_answered_is_given_up_soon() -> None:
    outcome, waits = tried([Transient("no connection", lost=True)] * 20, known=False)
    assert isinstance(outcome, Outage)
    assert len(waits) == 3
    outcome, waits = tried([Transient("429", limited=True)] * 6, known=False)
    assert outcome == ("reply", 6)


def test_the_outage_says_who_and_why_and_how_to_go_on() -> None:
    outcome, _ = tried([Transient("503: overloaded")] * 3, attempts=3)
    assert str(outcome) == (
        "m did not answer after 3 tries (last: 503: overloaded); nothing was scored, "
        "run the same command again to go on."
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date_to_come() -> None:
    wait = retry_after({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert wait is not None
    assert 50 < wait <= 101
