"""Embedders by name: folders, endpoints, prefixes and rerankers, without a real model."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from kbgym.api.factory import embedder_named
from kbgym.errors import BadInput, Failed, Missing
from kbgym.gym.actions import Search
from kbgym.gym.environment import Environment
from kbgym.search.cache import VectorCache
from kbgym.search.embed import CachedEmbedder, EndpointEmbedder, HashEmbedder, Vectors
from kbgym.search.engine import RERANKED
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.search.models import BGE, MINILM, open_embedder
from kbgym.search.onnx import CrossEncoder, OnnxEmbedder, pooling_of
from kbgym.search.wordpiece import SPECIAL
from kbgym.store import Store, source

WORDS = (*SPECIAL, *"abcdefghijklmnopqrstuvwxyz", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"))


def model_folder(folder: Path, output: str = "states") -> Path:
    """A tiny model: the state of a token is its row of a table; the score of a pair sums its token numbers."""
    onnx = pytest.importorskip("onnx", reason="building a model needs onnx (dev extra)")
    helper, types = onnx.helper, onnx.TensorProto
    table = np.random.default_rng(1).standard_normal((len(WORDS), 8)).astype(np.float32)
    ids = helper.make_tensor_value_info("input_ids", types.INT64, ["batch", "length"])
    mask = helper.make_tensor_value_info("attention_mask", types.INT64, ["batch", "length"])
    if output == "states":
        nodes = [helper.make_node("Gather", ["table", "input_ids"], ["out"])]
        initial, shape = [onnx.numpy_helper.from_array(table, "table")], ["batch", "length", 8]
    else:
        nodes = [
            helper.make_node("ReduceSum", ["input_ids", "axes"], ["sum"], keepdims=1),
            helper.make_node("Cast", ["sum"], ["out"], to=types.FLOAT),
        ]
        initial, shape = [onnx.numpy_helper.from_array(np.array([1]), "axes")], ["batch", 1]
    out = helper.make_tensor_value_info("out", types.FLOAT, shape)
    graph = helper.make_graph(nodes, "tiny", [ids, mask], [out], initial)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    folder.mkdir(parents=True)
    onnx.save(made, str(folder / "model.onnx"))
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return folder


def test_folder_is_an_embedder_that_gives_a_text_the_same_bits_in_any_batch(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "tiny")
    embedder = open_embedder(str(folder), tmp_path)
    texts = ["a", "abc", "cab", "a b c d"]
    rows = embedder.embed(texts)
    assert rows.shape == (4, embedder.dimensions) == (4, 8)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    alone = OnnxEmbedder(folder, "x")
    assert np.array_equal(rows, np.concatenate([alone.embed([text]) for text in texts]))
    assert alone.embed([]).shape == (0, 8)
    assert embedder_named(str(folder)) is embedder_named(str(folder))


def test_pooling_is_read_from_the_folder(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "tiny")
    assert pooling_of(folder) == "mean"
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert pooling_of(folder) == "cls"
    cls, mean = (OnnxEmbedder(folder, "x", pooling).embed(["a", "b"]) for pooling in ("cls", "mean"))
    assert np.array_equal(cls[0], cls[1]), "both begin with the same token"
    assert not np.array_equal(mean[0], mean[1])


@pytest.mark.parametrize("name", ["nothing", "openai:nowhere", "openai:http://x", "all-MiniLM-L6-v2+nothing", ""])
def test_name_that_stands_for_nothing_is_bad_input(name: str, tmp_path: Path) -> None:
    with pytest.raises((BadInput, Missing)) as error:
        open_embedder(name, tmp_path)
    assert isinstance(error.value, BadInput) or name.startswith(MINILM.name)


def test_package_that_is_not_installed_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Missing):
        open_embedder("st:anything", tmp_path)


class Endpoint(BaseHTTPRequestHandler):
    requests: list[tuple[str, dict[str, object], str | None]] = []  # noqa: RUF012 - one a test process
    broken = False

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.path, body, self.headers.get("Authorization")))
        rows = [{"index": at, "embedding": [1.0, float(len(text))]} for at, text in enumerate(body["input"])]
        reply = b"{}" if self.broken else json.dumps({"data": rows[::-1]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Endpoint.requests.clear()
    yield f"openai:http://127.0.0.1:{server.server_port}/v1#tiny"
    server.shutdown()
    server.server_close()
    Endpoint.broken = False


def test_endpoint_is_asked_in_batches_and_its_order_is_kept(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    embedder = EndpointEmbedder(endpoint)
    texts = ["x" * number for number in range(100)]
    rows = embedder.embed(texts)
    assert rows.shape == (100, 2) and np.allclose(rows[:, 1] / rows[:, 0], range(100))
    assert [len(body["input"]) for _, body, _ in Endpoint.requests] == [64, 36, 1]  # type: ignore[arg-type]
    assert {(path, body["model"], key) for path, body, key in Endpoint.requests} == {
        ("/v1/embeddings", "tiny", "Bearer secret")
    }


def test_endpoint_that_answers_otherwise_fails(endpoint: str) -> None:
    Endpoint.broken = True
    with pytest.raises(Failed):
        EndpointEmbedder(endpoint).embed(["a"])
    with pytest.raises(Failed):
        EndpointEmbedder("openai:http://127.0.0.1:9/v1#tiny").embed(["a"])


class Prefixed(HashEmbedder):
    """Embeds only what is a query as one."""

    prefix = "query: "

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return super().embed(texts)


def test_only_queries_get_the_prefix_of_a_model() -> None:
    model = Prefixed()
    store = Store([source("a", "one fact"), source("b", "another")])
    engine = live_engine_for(store, CachedEmbedder(model))
    assert model.asked == ["one fact", "another"]
    environment = Environment(store, engine)

    async def work() -> None:
        await environment.step(Search("one"), "reader")
        assert "query: one" in model.asked
        engine.nearest("one fact", 1)
        assert "query: one fact" not in model.asked
        engine.embedding.close()

    asyncio.run(work())
    assert BGE.prefix.endswith(": ")


class Backwards:
    """A reranker that likes what a ranking put last."""

    name = "backwards"
    asked = 0

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked += 1
        return [float(at) for at in range(len(texts))]


@pytest.mark.parametrize("live", [False, True])
def test_reranker_orders_the_first_results_and_leaves_the_others(live: bool) -> None:
    texts = [(f"d{n:02}", f"fact {'x ' * n}") for n in range(50)]
    reranker = Backwards()
    embedder = CachedEmbedder(HashEmbedder(), reranker=reranker)
    plain = engine_for(texts, CachedEmbedder(HashEmbedder()), search="hybrid")
    engine = live_engine_for(texts, embedder, search="hybrid") if live else engine_for(texts, embedder, search="hybrid")
    ids = [id for id, _ in plain.search("fact x", 0, 50)]
    asyncio.run(engine.prepare(["fact x"]))
    found = [id for start in range(0, 50, 5) for id, _ in engine.search("fact x", start, 5)]
    assert found == ids[:RERANKED][::-1] + ids[RERANKED:]
    assert reranker.asked == 1
    assert embedder.name == "hash-256+backwards"
    engine.put("new", "fact x x")
    assert "new" in [id for id, _ in engine.search("fact x", 0, 50)]


def test_cross_encoder_reads_query_and_text_together(tmp_path: Path) -> None:
    encoder = CrossEncoder(model_folder(tmp_path / "pairs", "score"), "x")
    one, two = encoder.scores("a b", ["c", "c d"])
    numbers = {word: number for number, word in enumerate(WORDS)}
    assert one == sum(numbers[word] for word in ("[CLS]", "a", "b", "[SEP]", "c", "[SEP]"))
    assert two == one + numbers["d"]
    assert encoder.scores("a", []) == []


def test_vectors_are_cached_under_the_embedder_without_its_reranker(tmp_path: Path) -> None:
    model = Prefixed()
    CachedEmbedder(model, VectorCache(tmp_path), reranker=Backwards()).embed(["text"])
    CachedEmbedder(model, VectorCache(tmp_path)).embed(["text"])
    assert model.asked == ["text"]
