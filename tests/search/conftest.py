"""The model's folder for tests that need it, and a cache folder no other test writes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbgym.errors import Missing
from kbgym.search import minilm, models


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "_hub", lambda model: None)
        try:
            return models.find(models.MINILM, tmp_path_factory.mktemp("empty"))
        except Missing as error:
            pytest.skip(f"the embedding model is needed: {error}")


@pytest.fixture(scope="session")
def model(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> minilm.MiniLM:
    return minilm.MiniLM(model_folder, tmp_path_factory.mktemp("checked"), threads=2)
