"""wordllama behind the embedder seam: word vectors averaged, some fifty times as fast as a transformer.

For very large corpora and tests at scale; it is weaker on synonyms. The package is optional and imported when an
embedder is made; its weights lie inside it, so it works offline. Only its tokenizer and table are used: its own
averaging pads a batch, and the bits of a row would then depend on its neighbours.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbgym.errors import Missing

INSTALL = "pip install wordllama==0.4.0.post1"


class WordLlamaEmbedder:
    """The 256-dimensional table that ships with the package."""

    name = "wordllama-l2-supercat-256"
    dimensions = 256

    def __init__(self) -> None:
        root = logging.getLogger()
        level, handlers = root.level, list(root.handlers)
        try:
            wordllama = importlib.import_module("wordllama")
        except ImportError as error:
            raise Missing(f"the wordllama embedder is not installed; run `{INSTALL}`.") from error
        finally:
            # Importing it sets up the root logger, which is not a library's to do.
            root.setLevel(level)
            root.handlers[:] = handlers
        place = Path(str(wordllama.__file__)).parent
        model = wordllama.WordLlama.load(cache_dir=place, disable_download=True)
        self._tokenizer, self._table = model.tokenizer, model.embedding
        self._tokenizer.no_padding()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length a text; a text without a known word gets a fixed one."""
        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        written = [text.encode("utf-8", "replace").decode() for text in texts]  # an unpaired surrogate becomes "?"
        for row, encoded in zip(out, self._tokenizer.encode_batch(written, add_special_tokens=False), strict=True):
            known = [number for number in encoded.ids if number < len(self._table)]
            summed = self._table[known].sum(axis=0, dtype=np.float64)
            length = float(np.sqrt((summed * summed).sum()))
            if length > 0:
                row[:] = summed / length
            else:
                row[0] = 1
        return out
