"""Making what can be opened: a run by training on a world, a world from somebody's files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kbgym.agents.command.agent import KEPT
from kbgym.agents.judge import LLMJudge
from kbgym.artefact.opened import Artefact
from kbgym.artefact.parts import (
    CASSETTE,
    Player,
    agents_named,
    embedder_named,
    engine_for,
    models_for,
    name_of,
    spread_over,
    training_settings,
)
from kbgym.corpus.build import ReadingOptions
from kbgym.corpus.make import make
from kbgym.errors import BadInput
from kbgym.llm.connect import Models
from kbgym.protocol.exam import Tick
from kbgym.protocol.run import Run
from kbgym.protocol.train import Agents, Trainer, join, remembered
from kbgym.sync import run_sync
from kbgym.trace.folder import StoreFolder
from kbgym.trace.place import is_url, open_place
from kbgym.worlds.world import World


def train(
    world: World | str | Path,
    out: str | Path,
    reader: Player = "reference",
    curator: Player = "reference",
    models: Models | None = None,
    tick: Tick | None = None,
    **settings: Any,
) -> Artefact:
    """Train a store on a world's questions and open the run. Interrupted training goes on when it is called again.

    `settings` are the fields of `Settings`: questions, epochs, seed, strategy, embedder and so on.
    """
    taught = world if isinstance(world, World) else World.load(Path(world))
    chosen = training_settings(taught, reader=name_of(reader), curator=name_of(curator), **settings)
    agents_named(chosen, models, reader, curator)  # refuses whom it does not know, before anything is written
    run = Run.open_or_create(Path(out), taught, chosen)
    with models_for([chosen.reader, chosen.curator, chosen.judge], models, cassette=run.folder / CASSETTE) as shared:
        teach(trainer_for(run, agents_named(chosen, shared, reader, curator, taught, run.folder / KEPT)), tick)
    return Artefact(out)


def trainer_for(run: Run, agents: Agents, url: str | None = None, tick: Tick | None = None) -> Trainer:
    """Everything a run's training needs, every document embedded. With a `url` the store is the one there, perhaps
    trained by others too."""
    settings = run.settings
    if url is not None:
        if not is_url(url):
            raise BadInput(f"--store {url} is no postgresql:// URL; without it the run's own folder keeps the store.")
        if settings.admission:
            raise BadInput("admission judges one lesson at a time, which a store shared with others does not allow.")
        join(url, StoreFolder(run.folder).initial, settings.embedder, remembered(settings, agents))
    place = open_place(url or run.folder)
    overlays = settings.admission > 0  # what is on trial is searched apart
    spread = spread_over(run.world.documents, settings.per_source) if settings.per_source else None
    vectors = embedder_named(settings.embedder)
    engine = engine_for(place.store(), vectors, tick, overlays, settings.search, spread)
    place.close()
    return Trainer(run, agents, engine, url)


def teach(trainer: Trainer, tick: Tick | None = None) -> None:
    """Every lesson that is left. A judge that cannot judge stops it before it begins: it would go unnoticed."""
    judge = trainer.agents.judge
    if isinstance(judge, LLMJudge) and trainer.position < len(trainer.lessons):
        try:
            run_sync(judge.self_test())
        except BaseException:
            run_sync(trainer.live.close())
            raise
    run_sync(trainer.train(tick))


def import_corpus(
    paths: str | Path | Iterable[str | Path],
    questions: str | Path | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    **options: Any,
) -> World:
    """Your own files as a world, written to `out` if one is given; `options` are `language`, `links`, `code`,
    `on_error`."""
    files = [paths] if isinstance(paths, str | Path) else paths
    made = make(
        [Path(file) for file in files], None if questions is None else Path(questions), ReadingOptions(**options), seed
    )
    if out is not None:
        made.world.save(Path(out))
    return made.world
