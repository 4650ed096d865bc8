"""No key gets into a cassette, a trace, an exam, an error, a log or a report, wherever it was planted."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer
from llm_fixtures import exam, quick, world
from prompt_reader import calling

from kbgym.agents.llm.redact import Redactor, address
from kbgym.errors import KbgymError

ENV_KEY = "env-PLANTED-aaaaaaaaaaaa"
URL_KEY = "url-PLANTED-bbbbbbbbbbbb"
PASSWORD = "pass-PLANTED-cccccccccccc"
SHAPED = "sk-proj-PLANTED-dddddddddddd"
LOCAL_KEY = "local-PLANTED-eeeeeeeeeeee"
PLANTED = (ENV_KEY, URL_KEY, PASSWORD, SHAPED, LOCAL_KEY)


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", ENV_KEY)
    monkeypatch.setenv("KBGYM_LOCAL_API_KEY", LOCAL_KEY)


def clean(text: str) -> bool:
    return "PLANTED" not in text


def with_secrets(url: str) -> str:
    return url.replace("http://", f"http://user:{PASSWORD}@") + f"?api-key={URL_KEY}"


def leaks(body: dict[str, Any]) -> dict[str, Any]:
    """A model that says every key it could have heard of."""
    return calling(body, [("answer", f'{{"text":"{" ".join(PLANTED)}"}}')])


def test_replies_cassettes_and_rows_hold_no_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    questions = world().split("test_in")[:3]
    with FaultServer(leaks) as server:
        rows, agent = exam(with_secrets(server.url), questions, tmp_path / "rows.jsonl", cassette=tmp_path / "c.jsonl")
    # They did reach the server, which is what they are for.
    assert server.headers[0]["authorization"].startswith("Basic ")
    assert f"?api-key={URL_KEY}" in server.lines[0]
    assert rows[0].answer is not None
    assert "[key]" in rows[0].answer
    for file in tmp_path.iterdir():
        assert clean(file.read_text()), file
    assert clean(repr(rows))
    assert clean(repr(agent.client.usage))
    assert clean(agent.client.provider.where)  # type: ignore[union-attr]
    assert clean(caplog.text)


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_errors_hold_no_key(status: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    class Rude(FaultServer):
        async def _respond(self, line: str, headers: dict[str, str], raw: bytes, writer: Any) -> bool:
            message = f'"invalid {" ".join(PLANTED)} for Bearer {SHAPED}"'
            await self._send(writer, status, f'{{"error":{{"message":{message}}}}}'.encode())
            return True

    for name in ("llm:openai/m", "llm:local/m"):
        with Rude() as server, pytest.raises(KbgymError) as raised:
            exam(with_secrets(server.url), world().split("test_in")[:1], name=name, retry=quick(2))
        assert clean("".join(traceback.format_exception(raised.value)))
        assert raised.value.__cause__ is None
    assert clean(caplog.text)


def test_a_dead_address_is_named_without_its_secrets() -> None:
    url = f"http://user:{PASSWORD}@127.0.0.1:9/v1?key={URL_KEY}"
    with pytest.raises(KbgymError) as raised:
        exam(url, world().split("test_in")[:1], retry=quick(2))
    assert clean("".join(traceback.format_exception(raised.value)))
    assert "127.0.0.1:9" in str(raised.value)


def test_the_local_server_never_gets_the_cloud_key() -> None:
    with FaultServer(leaks) as server:
        exam(server.url, world().split("test_in")[:1])
    assert ENV_KEY.lower() not in str(server.headers).lower()
    assert LOCAL_KEY.lower() in str(server.headers).lower()


def test_redaction_of_shapes_and_of_written_forms() -> None:
    redact = Redactor(['quo"ted-PLANTED', "sl/ash PLANTED"])
    assert redact("Authorization: Bearer abcdefgh12345678") == "Authorization: [key]"
    assert redact("key sk-ant-abc123def456 end") == "key [key] end"
    assert redact('{"x":"quo\\"ted-PLANTED"}') == '{"x":"[key]"}'
    assert redact("?k=sl%2Fash%20PLANTED") == "?k=[key]"
    assert redact("http://me:secretword@host/v1") == "http://[key]@host/v1"
    assert (
        redact("Anna Berg lives in Lund; the task-list is done.") == "Anna Berg lives in Lund; the task-list is done."
    )
    assert address("https://a:b@host:99/v1?key=1#x").url == "https://host:99/v1"
