"""Keys and tokens planted wherever they can be given: a run, its exams, its server and its pages show none of them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from fault_server import FaultServer
from prompt_reader import calling
from serving import make_tokens, serving
from starlette.testclient import TestClient

from kbgym.cli.main import app
from kbgym.viewer.app import PAGES, guarded, make_viewer
from kbgym.viewer.places import ViewedPlaces
from kbgym.worlds.people import generate

KEYS = {
    "OPENAI_API_KEY": "env-PLANTED-aaaa",
    "ANTHROPIC_API_KEY": "ant-PLANTED-bbbb",
    "KBGYM_LOCAL_API_KEY": "own-PLANTED-cccc",
}
IN_URL = ("pass-PLANTED-eeee", "query-PLANTED-ffff")
API = ("places", "about", "gradient", "learning", "summary", "corrections", "audit", "questions", "lessons", "live")


def leaks(body: dict[str, Any]) -> dict[str, Any]:
    """Answer with every key there is."""
    said = json.dumps({"text": " ".join([*KEYS.values(), *IN_URL])})
    return calling(body, [("answer" if "answer" in json.dumps(body) else "done", said)])


def command(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


def test_no_planted_secret_is_kept_or_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    generate(people=40, seed=1).save(tmp_path / "world")
    run, (word, query) = tmp_path / "run", IN_URL
    with FaultServer(leaks) as server:
        url = server.url.replace("http://", f"http://ada:{word}@") + f"?api-key={query}"
        model = ("--set", f"base_url={url}", "--set", "embedder=hash", "--yes")
        few = ("--questions", "2", "--epochs", "1", "--reader", "llm:local/m", "--set", "eval=false")
        said = command("train", "--world", tmp_path / "world", "--out", run, *few, *model)
        agent = ("--set", "test_in", "--agent", "llm:local/m")
        said += command("exam", run, *agent, "--limit", "2", "--out", tmp_path / "rows.jsonl", *model)
        assert any(query in line for line in server.lines), "the endpoint was given what it is for"
    tokens = make_tokens(run)
    with serving(run, "--reader", "reference", "--curator", "reference") as served:
        with httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {tokens.curator}"}) as http:
            asked = http.post("/v1/questions", json={"question": "Who is a baker?"}).json()
            http.post(f"/v1/questions/{asked['id']}/gold", json={"answers": ["nobody"]})
            said += "".join(http.get(path).text for path in ("/v1/learning", "/v1/stats", "/metrics", "/openapi.json"))
            said += httpx.get(f"{served.url}/v1/stats", headers={"Authorization": f"Bearer {tokens.reader}x"}).text
        said += served.stop()
    pages = TestClient(guarded(make_viewer(ViewedPlaces([run]))), base_url="http://127.0.0.1")
    said += "".join(pages.get(f"/{page}").text for page in PAGES)
    said += "".join(pages.get(f"/api/{name}").text for name in API)
    said += caplog.text + "".join(command("store", verb, run) for verb in ("log", "stats"))
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert [path for path in written if path.name.endswith("cassette.jsonl")], "what the model said is kept"
    for secret in (*KEYS.values(), *IN_URL, tokens.reader, tokens.curator):
        assert secret not in said
        assert not [path for path, data in written.items() if secret.encode() in data]
