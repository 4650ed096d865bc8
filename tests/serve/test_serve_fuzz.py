"""The server against its own OpenAPI document, fuzzed: no 5xx, no status and no shape it does not document."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
    status_code_conformance,
)
from serving import Server, Tokens

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    positive_data_acceptance,
    negative_data_rejection,
)


def fuzz(operation: Any, mode: GenerationMode, headers: dict[str, str]) -> int:
    """Send what fits the document, or what does not; gives how many requests that was."""
    asked = 0

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case: Any) -> None:
        nonlocal asked
        asked += 1
        case.validate_response(case.call(headers=headers), checks=CHECKS)

    send()
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("role", ["reader", "curator"])
def test_nothing_breaks_it(fresh: tuple[Server, Tokens, object], role: str) -> None:
    server, tokens, _ = fresh
    schema = schemathesis.openapi.from_dict(httpx.get(f"{server.url}/openapi.json").json())
    schema.config.update(base_url=server.url)
    headers = {"Authorization": f"Bearer {getattr(tokens, role)}"}
    asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        asked += fuzz(operation, GenerationMode.POSITIVE, headers)
        if operation.method == "post":  # a path alone cannot be wrong
            asked += fuzz(operation, GenerationMode.NEGATIVE, headers)
    assert asked > 200
    assert httpx.get(f"{server.url}/health").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("role", ["reader", "curator"])
def test_what_one_operation_returns_another_takes(fresh: tuple[Server, Tokens, object], role: str) -> None:
    """The stateful phase: calls in sequences, each with what an earlier one returned."""
    server, tokens, _ = fresh
    header = f"Authorization: Bearer {getattr(tokens, role)}"
    how = ["--phases", "stateful", "--max-examples", "10", "--seed", "7", "--header", header, "--no-color"]
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", *how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0 and "Stateful" in done.stdout, done.stdout
