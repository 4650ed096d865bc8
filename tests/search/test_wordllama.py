"""The fast optional embedder: the same bits in any batch, unit rows, and a clear word where it is not installed."""

from __future__ import annotations

import importlib.util
import logging
import sys

import numpy as np
import pytest

from kbgym.errors import Missing
from kbgym.search.wordllama import WordLlamaEmbedder

installed = pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="wordllama is not installed")


@installed
def test_rows_have_unit_length_and_the_same_bits_in_any_batch() -> None:
    handlers = list(logging.getLogger().handlers)
    embedder = WordLlamaEmbedder()
    assert logging.getLogger().handlers == handlers
    texts = ["", "Ada is a baker.", "Ada bakes bread.", "The rocket left orbit.", "x" * 10_000, "\ud800", "中文"]
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), embedder.dimensions)
    assert np.allclose(np.linalg.norm(rows.astype(np.float64), axis=1), 1, atol=1e-6)
    assert rows.tobytes() == b"".join(embedder.embed([text]).tobytes() for text in texts)
    assert float(rows[1] @ rows[2]) > float(rows[1] @ rows[3])


def test_its_absence_is_told_with_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(Missing, match="pip install wordllama"):
        WordLlamaEmbedder()
