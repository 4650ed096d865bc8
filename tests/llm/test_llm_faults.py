"""Exams and training over a server that fails: one row a question, and every score the one without faults."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fault_server import FAULTS, TRANSPORT, FaultServer
from llm_fixtures import direct_rows, events, exam, quick, train_over, train_reference, world
from prompt_reader import Reference

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.retry import CapReached, Outage
from kbgym.errors import Failed
from kbgym.worlds.people import TEMPLATES, pool
from kbgym.worlds.world import Question


def questions(n: int) -> tuple[Question, ...]:
    return (world().split("test_in") + world().split("train"))[:n]


def test_without_faults_the_exam_is_the_one_without_a_server() -> None:
    with FaultServer() as server:
        rows, agent = exam(server.url, questions(40))
    assert rows == direct_rows(questions(40))
    assert agent.client.usage.requests == sum(row.actions for row in rows)
    assert agent.client.usage.malformed == agent.client.usage.retries == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone(fault: str) -> None:
    with FaultServer(rate=0.3, faults=(fault,), stall=0.6) as server:
        rows, agent = exam(server.url, questions(6), timeout=0.3 if fault in ("timeout", "drip") else 20.0)
    assert server.injected[fault] > 0
    assert rows == direct_rows(questions(6))
    usage = agent.client.usage
    assert (usage.retries > 0) == (fault in TRANSPORT)
    if fault in TRANSPORT:
        assert usage.malformed == 0
    else:
        assert usage.malformed == server.injected[fault]


def test_anthropics_protocol_plays_the_same_exam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    with FaultServer(rate=0.2, faults=("limited", "error", "prose", "two_calls", "reset")) as server:
        rows, _ = exam(server.url.removesuffix("/v1"), questions(12), name="llm:anthropic/reference")
    assert sum(server.injected.values()) > 5
    assert rows == direct_rows(questions(12))


def test_the_schema_way_plays_the_same_exam() -> None:
    """A server that ignores tools altogether: after a few corrections everything goes by schema."""
    reference = Reference()

    def script(body: dict[str, Any]) -> Any:
        return {"role": "assistant", "content": "Hm."} if "tools" in body else reference(body)

    with FaultServer(script) as server:
        rows, agent = exam(server.url, questions(12))
    assert rows == direct_rows(questions(12))
    assert agent.client.usage.sent[-1].way == "schema"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_thousand_passes_at_thirty_percent_faults(tmp_path: Path) -> None:
    whole = [question for template in TEMPLATES for question in pool(world(), template)]
    asked = tuple(whole[:: len(whole) // 1000][:1000])
    assert len({question.id for question in asked}) == 1000
    out = tmp_path / "rows.jsonl"
    with FaultServer(rate=0.3, stall=0.8) as server:
        rows, agent = exam(server.url, asked, out, timeout=0.5, concurrency=32)
    assert set(server.injected) == set(FAULTS)
    faults, asked_for = sum(server.injected.values()), len(server.bodies)
    assert 0.25 < faults / asked_for < 0.35
    assert Counter(row.id for row in rows) == Counter(question.id for question in asked)
    assert rows == direct_rows(asked)
    assert len(out.read_bytes().splitlines()) == 1000
    # A malformed reply may come too late on a busy machine: then it was retried instead.
    malformed = sum(n for fault, n in server.injected.items() if fault not in TRANSPORT)
    assert 0.9 * malformed < agent.client.usage.malformed <= malformed


def test_an_outage_stops_the_exam_and_it_goes_on_without_paying_twice(tmp_path: Path) -> None:
    out, cassette = tmp_path / "rows.jsonl", tmp_path / "c.jsonl"
    asked = questions(30)
    reference = Reference()

    class Dies(FaultServer):
        """Answers so many requests and then only 503."""

        async def _respond(self, line: str, headers: dict[str, str], raw: bytes, writer: Any) -> bool:
            if self.answered >= 60:
                await self._send(writer, 503, b'{"error":{"message":"down for today"}}')
                return True
            return await super()._respond(line, headers, raw, writer)

    with Dies(reference) as server, pytest.raises(Outage, match="down for today"):
        exam(server.url, asked, out, cassette=cassette, retry=quick(3))
    finished = len(out.read_bytes().splitlines())
    assert 0 < finished < 30
    assert b'"f1":null' not in out.read_bytes()
    with FaultServer(reference) as server:
        rows, agent = exam(server.url, asked, out, cassette=cassette)
    assert rows == direct_rows(asked)
    assert agent.client.usage.requests > len(server.bodies)  # the others came from the cassette
    recorded = Cassette(cassette, record=False)
    # Every reply that was paid for is on the cassette, once; together they are exactly the exam.
    assert 60 + len(server.bodies) == len(recorded)
    assert len(recorded) == sum(row.actions for row in rows)
    offline, _ = exam("", asked, name=f"cassette:{cassette}", base_url=None)
    assert offline == rows


def test_a_cap_stops_the_exam_and_a_higher_one_finishes_it(tmp_path: Path) -> None:
    out, cassette = tmp_path / "rows.jsonl", tmp_path / "c.jsonl"
    asked = questions(12)
    with FaultServer() as server:
        with pytest.raises(CapReached, match="max_tokens 30000"):
            exam(server.url, asked, out, cassette=cassette, max_tokens=30_000)
        spent = Cassette(cassette, record=False).spent
        assert 30_000 <= spent.tokens < 33_000
        # The same cap again stops at once: what was spent before counts.
        with pytest.raises(CapReached):
            exam(server.url, asked, out, cassette=cassette, max_tokens=30_000)
        assert Cassette(cassette, record=False).spent == spent
        rows, _ = exam(server.url, asked, out, cassette=cassette, max_tokens=10_000_000)
    assert rows == direct_rows(asked)


# -- training -------------------------------------------------------------------------------------------------------


def test_training_over_a_failing_server_writes_the_same_trace(tmp_path: Path) -> None:
    direct = train_reference(tmp_path / "direct")
    with FaultServer(rate=0.2, faults=("limited", "error", "prose", "reset", "two_calls")) as server:
        over, usage = train_over(server.url, tmp_path / "over")
    assert usage.malformed > 0
    assert usage.retries > 0
    assert events(over) == events(direct)


def test_training_through_an_outage_pays_nothing_twice(tmp_path: Path) -> None:
    direct = train_reference(tmp_path / "direct")
    cassette = tmp_path / "c.jsonl"
    reference = Reference()

    def dies(body: dict[str, Any]) -> Any:
        return reference(body) if server.answered < 50 else {"role": "assistant", "content": None, "tool_calls": "down"}

    with FaultServer(dies) as server, pytest.raises(Failed):
        train_over(server.url, tmp_path / "run", cassette)
    assert server.answered >= 50
    with FaultServer(reference) as server:
        over, _ = train_over(server.url, tmp_path / "run", cassette)
        later = server.answered
    assert events(over) == events(direct)
    assert len(Cassette(cassette, record=False)) == 50 + later
