"""Retrievers of LangChain, LlamaIndex, Haystack and DSPy, each against the real package, and the client below them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbgym.canonical import write_lines
from kbgym.errors import BadInput, Failed
from kbgym.integrations.client import StoreClient, connect
from kbgym.trace.backend import open_backend
from kbgym.training.run import Settings
from kbgym.worlds.world import Document, Source

TEXTS = {
    "d1": "Lund: The harbour of Lund opens in May.",
    "d2": "Lund: Its baker is Ada Alm.",
    "d3": "Ystad: The baker of Ystad is Bo Berg.",
}
QUERY = "baker of Ystad"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    files = {"d1": "lund.md", "d2": "lund.md", "d3": "ystad.md"}
    rows = [Document(id, text, source=Source(files[id], 10, 50)) for id, text in TEXTS.items()]
    write_lines(folder / "documents.jsonl", rows)
    (folder / "world.json").write_text('{"kind": "corpus"}', encoding="utf-8")
    settings = msgspec.structs.replace(Settings(), embedder="hash", search="words")
    open_backend(folder).start("hash", msgspec.to_builtins(settings)).close()
    return folder


@pytest.fixture
def client(place: Path) -> Iterator[StoreClient]:
    with connect(str(place)) as made:
        yield made


def of_langchain(place: str) -> list[tuple[str, str, dict[str, Any]]]:
    pytest.importorskip("langchain_core", reason="LangChain is tested in an environment of its own")
    from kbgym.integrations.langchain import KbgymRetriever

    found = KbgymRetriever(place=place, k=2).invoke(QUERY)
    return [(str(one.id), one.page_content, one.metadata) for one in found]


def of_llamaindex(place: str) -> list[tuple[str, str, dict[str, Any]]]:
    pytest.importorskip("llama_index.core", reason="LlamaIndex is tested in an environment of its own")
    from kbgym.integrations.llamaindex import KbgymRetriever

    found = KbgymRetriever(place, k=2).retrieve(QUERY)
    return [(one.node.node_id, one.node.get_content(), one.node.metadata) for one in found]


def of_haystack(place: str) -> list[tuple[str, str, dict[str, Any]]]:
    pytest.importorskip("haystack", reason="Haystack is tested in an environment of its own")
    from haystack import Pipeline

    from kbgym.integrations.haystack import KbgymRetriever

    pipeline = Pipeline()
    pipeline.add_component("retriever", KbgymRetriever(place, top_k=2))
    found = Pipeline.loads(pipeline.dumps(), unsafe=True).run({"retriever": {"query": QUERY}})["retriever"]["documents"]
    return [(one.id, one.content, one.meta) for one in found]


def of_dspy(place: str) -> list[tuple[str, str, dict[str, Any]]]:
    pytest.importorskip("dspy", reason="DSPy is tested in an environment of its own")
    from kbgym.integrations.dspy import KbgymRetriever

    found = KbgymRetriever(place, k=2)(QUERY)
    assert found.passages == [one["text"] for one in found.documents]
    return [(one["id"], one["text"], one) for one in found.documents]


@pytest.mark.parametrize("retrieve", [of_langchain, of_llamaindex, of_haystack, of_dspy])
def test_a_retriever_returns_documents_with_their_sources(
    place: Path, retrieve: Callable[[str], list[tuple[str, str, dict[str, Any]]]]
) -> None:
    found = retrieve(str(place))
    assert len(found) == 2
    id, text, about = found[0]
    assert (id, text) == ("d3", TEXTS["d3"])
    assert about["source"] == {"file": "ystad.md", "start": 10, "end": 50} and about["superseded_by"] == []


def test_the_client_searches_pages_and_files(client: StoreClient) -> None:
    assert [one.id for one in client.search(QUERY, k=1)] == ["d3"]
    assert {one.id for one in client.search(QUERY, k=50)} == {"d2", "d3"}
    assert {one.id for one in client.search(QUERY, file="lund.md")} == {"d2"}
    assert client.search(QUERY, file="nowhere.md") == []
    found = client.document("d3")
    assert (found.text, found.score, found.is_index) == (TEXTS["d3"], None, False)
    for k in (0, 51):
        with pytest.raises(BadInput):
            client.search(QUERY, k=k)
    with pytest.raises(BadInput):
        client.document("nowhere")


def test_a_client_teaches_only_a_store_it_opened_for_writing(place: Path) -> None:
    question = {"question": "Who is the baker of Ystad?", "answers": ["Cy Dahl"], "answer": "Bo Berg"}
    with connect(str(place)) as reading, pytest.raises(BadInput):
        reading.teach(**question)  # type: ignore[arg-type]
    with connect(str(place), write=True, name="ada") as store:
        taught = store.teach(**question)  # type: ignore[arg-type]
        assert taught.lesson is not None and list(taught.lesson.supersedes) == ["d3"]
        ids = [one.id for one in store.search(QUERY)]
        assert ids.index(taught.lesson.document) < ids.index("d3")
        assert store.undo(taught.lesson.iteration).changed
        assert store.forget(["d1"]).changed


def test_a_server_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(Failed):
        connect("http://127.0.0.1:9").search(QUERY)


PAGE = (Path(__file__).parents[1] / "docs" / "retrievers.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=["client", "langchain_core", "llama_index", "haystack", "dspy"])
def test_the_documented_snippets_run(
    place: Path, snippet: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    package = request.node.callspec.id
    if package != "client":
        pytest.importorskip(package, reason=f"{package} is tested in an environment of its own")
    exec(snippet.replace("runs/first", str(place)).replace("job is baker", QUERY), {})
    assert "ystad.md" in capsys.readouterr().out
