"""What a reader scores with no store at all, on worlds whose text is public: that much it knew before.

A world says of itself that its text is public (`facts["public_text"]`); models have read such texts. A score on such a
world means nothing without the score on an empty store beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kbgym.gym.policy import Agent
from kbgym.search.embed import HashEmbedder
from kbgym.search.engine import Engine
from kbgym.store import Store
from kbgym.training.exam import Row, examine
from kbgym.training.run import Settings
from kbgym.worlds.world import Question, World

ARM = "nostore"


def is_public(world: World) -> bool:
    return bool(world.facts.get("public_text"))


def no_store_file(out: Path) -> Path:
    """Where the rows without a store go: beside those with one."""
    return out.with_name(f"{out.stem}.{ARM}{out.suffix}")


async def examine_without(
    questions: Sequence[Question],
    reader: Agent,
    out: Path | None,
    settings: Settings,
    concurrency: int,
) -> list[Row]:
    """The same questions to the same reader over an empty store; rows already there are kept."""
    file = no_store_file(out) if out else None
    return await examine(Store(), Engine(HashEmbedder()), questions, reader, file, of_no_store(settings), concurrency)


def of_no_store(settings: Settings) -> Settings:
    """Settings for an empty store, where there is nothing to rank."""
    return msgspec.structs.replace(settings, ranking="paper", embedder="hash")
