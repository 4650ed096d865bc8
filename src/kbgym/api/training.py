"""Training of a run on a world, and import of files as a world."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kbgym.agents.external.agent import KEPT
from kbgym.agents.llm.connect import Models
from kbgym.agents.llm.policy import LLMJudge
from kbgym.api import factory
from kbgym.api.factory import Player
from kbgym.api.workspace import Workspace
from kbgym.corpus.documents import ReadingOptions
from kbgym.corpus.importing import make
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.store import Store
from kbgym.store.record import fingerprint_of
from kbgym.sync import run_sync
from kbgym.trace.backend import is_url, open_backend
from kbgym.trace.folder import read_records
from kbgym.training.lessons import Lesson
from kbgym.training.run import Run
from kbgym.training.session import Agents, recorded_settings
from kbgym.training.trainer import Trainer
from kbgym.worlds.world import World


def train(
    world: World | str | Path,
    out: str | Path,
    reader: Player | None = None,
    curator: Player | None = None,
    models: Models | None = None,
    tick: ProgressCallback | None = None,
    begins: str | Path | None = None,
    **settings: Any,
) -> Workspace:
    """Train a store on a world's questions and open the run. Interrupted training goes on when it is called again.

    The default agents are the reference agents if they know the world's grammar, else the general ones. `begins` is
    a store to train on top of, such as an arm's; `settings` are fields of `Settings`: questions, epochs, seed,
    strategy, embedder and so on.
    """
    taught = world if isinstance(world, World) else World.load(Path(world))
    store, said = beginning(begins, taught) if begins is not None else (None, None)
    named = {role: who and factory.name_of(who) for role, who in (("reader", reader), ("curator", curator))}
    chosen = factory.training_settings(taught, Path(out), **named, begins=said, **settings)
    factory.agents_named(chosen, models, reader, curator)  # rejects unknown agents before anything is written
    run = Run.open_or_create(Path(out), taught, chosen, store)
    players, cassette = [chosen.reader, chosen.curator, chosen.judge], run.folder / factory.CASSETTE
    with factory.models_for(players, models, cassette=cassette) as shared:
        teach(trainer_for(run, factory.agents_named(chosen, shared, reader, curator, taught, run.folder / KEPT)), tick)
    return Workspace(out)


def beginning(place: str | Path, world: World) -> tuple[Store, str]:
    """Return the store at a place to train on, and its name in the run's settings.

    It may be an arm's store, a run or a run at an iteration. Raise `BadInput` if it is made of other documents.
    """
    with Workspace(place) as opened:
        store = opened.store
        texts = {document.id: document.text for document in world.documents}
        held = {id for record in store for id in (record.origin, *record.absorbed) if id is not None}
        other = [record.id for record in store if record.flag == "untouched" and texts.get(record.id) != record.text]
        if held != texts.keys() or other:
            raise BadInput(f"{opened.name} was not built from this world's documents; build it with --world first.")
        what = opened.arm if opened.run is None else f"run at {opened.iteration}"
    return store.copy(), f"{what} {store.fingerprint[:16]}"


def trainer_for(run: Run, agents: Agents, url: str | None = None, tick: ProgressCallback | None = None) -> Trainer:
    """Return a trainer with every document embedded; with a `url`, one of a shared store that others may train too."""
    settings = run.settings
    if url is not None:
        if not is_url(url):
            raise BadInput(f"store {url} is no postgresql:// URL; without it the run's own folder keeps the store.")
        if settings.gate:
            raise BadInput("the gate judges one lesson at a time, which a store shared with others does not allow.")
        there = not run.world.documents  # and nothing is written locally
        began = None if there else fingerprint_of(read_records(run.folder))
        check_database(url, began, settings.embedder, recorded_settings(settings, agents))
    beside = factory.beside_on_page(run.world.documents)
    vectors = factory.embedder_named(settings.embedder)
    made = live_engine_for if settings.gate else engine_for  # staged edits are searched in an overlay
    return Trainer(run, agents, lambda store: made(store, vectors, tick, settings.search, beside), url)


def check_database(url: str, initial: str | None, embedder: str, settings: dict[str, Any]) -> None:
    """Start the trace of a store in a database, or raise BadInput if it began with other documents or settings.

    Args:
        initial: fingerprint of the expected documents; None accepts any.
    """
    place = open_backend(url)
    try:
        if initial is not None and place.initial.fingerprint != initial:
            raise BadInput(f"{place.name} began with other documents than this world's.")
        if place.genesis is None:
            place.start(embedder, settings).close()
            return
        begun = place.genesis.settings
        # The number of concurrent lessons may differ between processes.
        if other := [name for name in settings if name != "batch_size" and begun.get(name) != settings[name]]:
            values = "; ".join(f"{name} {begun.get(name)!r}, not {settings[name]!r}" for name in other)
            raise BadInput(f"{place.name} is being trained with {values}.")
    finally:
        place.close()


def teach(trainer: Trainer, tick: ProgressCallback | None = None, lessons: Sequence[Lesson] | None = None) -> None:
    """Teach all pending lessons, or those of `lessons`. Raise before the first one if the judge fails its self-test."""
    judge = trainer.agents.judge
    if isinstance(judge, LLMJudge) and trainer.position < len(trainer.lessons):
        try:
            run_sync(judge.self_test())
        except BaseException:
            run_sync(trainer.live.close())
            raise
    run_sync(trainer.train(tick, lessons))


def import_corpus(
    paths: str | Path | Iterable[str | Path],
    questions: str | Path | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    **options: Any,
) -> World:
    """Import files as a world, written to `out` if one is given; `options` are `language`, `links`, `code`,
    `on_error`."""
    files = [paths] if isinstance(paths, str | Path) else paths
    asked = None if questions is None else Path(questions)
    made = make([Path(file) for file in files], asked, ReadingOptions(**options), seed)
    if out is not None:
        made.world.save(Path(out))
    return made.world
