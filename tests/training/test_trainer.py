"""The trainer: whose answers the gate measures, and lessons that go on after a lost connection."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from kbgym.errors import Failed
from kbgym.gym.episode import Transcript
from kbgym.gym.policy import Backward, IndexTask, Turn
from kbgym.trace.backend import ConnectionLost
from kbgym.training import trainer as module
from kbgym.training.loop import backward_task, learn
from kbgym.training.run import Settings

QUICK = Settings(questions=2, epochs=1, embedder="hash", eval=False)
TASK = IndexTask("job", "baker", "named")


@pytest.mark.parametrize(("reader", "measured"), [("reference", True), ("general", False)])
def test_the_gate_measures_the_answers_of_readers_but_the_general_one(
    reader: str, measured: bool, tmp_path: Any, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(module, "Gate", lambda *given: made.append(given))
    monkeypatch.setattr(module, "train", lambda *_: asyncio.sleep(0))
    settings = msgspec.structs.replace(QUICK, gate=3, reader=reader, seed=5, forward_budget=7, memory=9)
    trainer = start(tmp_path / "run", settings)
    asyncio.run(trainer.train())
    held_out = trainer.run.world.split("eval")
    assert made == [(3, held_out, trainer.agents.reader if measured else None, 5, 7, 9)]


@pytest.mark.parametrize("losses", [0, 3, module.RETRIES, module.RETRIES + 1])
def test_a_lost_connection_is_tried_again_for_a_while(
    losses: int, tmp_path: Any, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, waits = 0, list[float]()

    async def train(*_: Any) -> None:
        nonlocal tries
        tries += 1
        if tries <= losses:
            raise ConnectionLost("gone")

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(module, "train", train)
    trainer = start(tmp_path / "run", QUICK)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    if losses > module.RETRIES:
        with pytest.raises(Failed):
            asyncio.run(trainer.train())
    else:
        asyncio.run(trainer.train())
    assert tries == min(losses, module.RETRIES) + 1
    assert waits == pytest.approx([number / 10 for number in range(min(losses, module.RETRIES))])


@pytest.mark.parametrize(
    ("strategy", "curator", "f1", "actions", "agenda", "enough"),
    [
        ("class", "llm:m", 1.0, 2, (), True),
        ("class", "llm:m", 1.0, 3, (), False),
        ("class", "llm:m", 0.9, 2, (), False),
        ("class", "llm:m", 1.0, 2, (TASK,), False),
        ("class", "general", 1.0, 2, (), False),
        ("paper", "llm:m", 1.0, 2, (), False),
    ],
)
def test_a_quick_right_answer_is_worth_no_backward_pass(
    strategy: str, curator: str, f1: float, actions: int, agenda: tuple[IndexTask, ...], enough: bool
) -> None:
    settings = msgspec.structs.replace(QUICK, strategy=strategy, curator=curator)
    turns = (Turn(None, None),) * actions  # type: ignore[arg-type]
    task = backward_task("Who?", turns, ("Ada",), f1, "Ada", agenda)
    played: list[Backward] = []

    async def curate(task: Backward) -> Transcript:
        played.append(task)
        return Transcript("curator", "done", ())

    asyncio.run(learn(settings, task, curate))
    assert played == ([] if enough else [task])
