"""Online learning: a question is answered first, its gold may come later, and what is learnt is on trial.

The forward pass is committed when the question is answered, the grade when the gold comes, the backward pass when it
has landed: each is durable by itself, so a crash loses nothing that was answered, and goes on with what was not learnt.
A gold is what a client gives as one; being told "right" never makes the store's own answer a gold.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kbgym.actions import Action, Answer, Delete, Error
from kbgym.environment import Step
from kbgym.episode import Transcript
from kbgym.errors import BadInput
from kbgym.grading import abstains, grade
from kbgym.online.agenda_follower import Desk
from kbgym.online.asked import Asked, Questions
from kbgym.online.measures import MeasureFile
from kbgym.online.withdrawal import Doubts
from kbgym.policy import Agent, Backward, Turn, Verdict
from kbgym.protocol.gate import Asking, Gate
from kbgym.protocol.run import Run, Settings
from kbgym.protocol.session import search_of
from kbgym.protocol.train import STRATEGIES
from kbgym.protocol.trial import (
    TRIES,
    Trial,
    forward,
    land,
    prepare_landing,
    quarantine,
    record_forward,
    trial,
    unchanged,
    without,
)
from kbgym.serve.owner import Owner, Snapshot
from kbgym.trace.events import Acted, Began, Ended, Graded, Noted, Phase
from kbgym.trace.place import is_url, open_place

MOST_OPEN = 256


class Refusal(Exception):
    """What was asked about a question cannot be done; `kind` is missing, conflict or forbidden."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Open:
    """A question a client's own agent is answering: it sees the store as it was when the question was opened."""

    def __init__(self, question: str, client: str, base: Snapshot, budget: int) -> None:
        self.question, self.client, self.base, self.budget = question, client, base, budget
        self.environment = base.environment()
        self.steps: list[Step] = []

    async def act(self, action: Action) -> Step:
        step = await self.environment.step(action, "reader")
        self.steps.append(step)
        return step


class Online:
    """Questions in, golds in, edits out."""

    def __init__(
        self,
        owner: Owner,
        questions: Questions,
        desk: Desk,
        reader: Agent,
        curator: Agent,
        settings: Settings,
        gate: Gate | None = None,
    ) -> None:
        self.owner, self.questions, self.desk, self.gate = owner, questions, desk, gate
        self.settings = settings
        self.reader, self.curator = reader, curator
        self._open: OrderedDict[str, Open] = OrderedDict()
        self._opened = 0
        self._wake = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        # A database keeps the trace, from which the rows come, and no file beside it.
        self._file = MeasureFile(owner.place, questions.rows) if owner.place.is_dir() else None
        self._written = len(questions.rows)
        self._doubts = Doubts()
        self.admitted = self.refused = self.withdrawn = 0
        for asked in questions.asked.values():
            if gate is not None and asked.golds:
                gate.answered(Asking(asked.id, asked.question, asked.golds, abstain(asked.golds)))

    # -- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, question: str, client: str, id: str | None = None) -> Asked:
        """The serving reader answers."""
        settings = self.settings
        transcript, base = await forward(self.owner, self.reader, question, settings.forward_budget, settings.memory)
        return await self._answered(question, settings.reader, transcript, base, id)

    async def open(self, question: str, client: str) -> tuple[str, Open]:
        """The client's own agent will answer, on the store as it is now."""
        async with self.owner.turn:
            base = self.owner.snapshot()
        self._opened += 1
        id = f"open-{base.iteration}-{self._opened}"
        self._open[id] = opened = Open(question, client, base, self.settings.forward_budget)
        if len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
        return id, opened

    def opened(self, id: str, client: str) -> Open:
        found = self._open.get(id)
        if found is None or found.client != client:
            raise Refusal("missing", f"there is no open question {id!r}.")
        return found

    async def close(self, id: str, client: str, answer: str) -> Asked:
        """The client's own agent has answered."""
        opened = self.opened(id, client)
        await opened.act(Answer(answer))
        if isinstance(opened.steps[-1].result, Error):
            raise Refusal("invalid", opened.steps.pop().result.message)  # type: ignore[union-attr]
        del self._open[id]
        transcript = Transcript("reader", "answered", tuple(opened.steps), answer=opened.steps[-1].action.text)  # type: ignore[union-attr]
        return await self._answered(opened.question, client, transcript, opened.base, None)

    async def report(self, question: str, client: str, actions: Sequence[Action], answer: str) -> Asked:
        """The client's own agent has answered elsewhere: its searches and reads are done again here, and recorded."""
        id, opened = await self.open(question, client)
        for action in actions[: opened.budget - 1]:
            await opened.act(action)
        return await self.close(id, client, answer)

    async def _answered(
        self, question: str, agent: str, transcript: Transcript, base: Snapshot, id: str | None
    ) -> Asked:
        owner = self.owner
        async with owner.turn:
            number = owner.iteration + 1
            id = id or f"s{number}"
            began = Began(number, "forward", agent, id, question)
            durable = owner.commit(record_forward(owner, began, transcript, base), told=True)
        await asyncio.shield(durable)
        return self.questions.asked[id]

    # -- feedback -----------------------------------------------------------------------------------------------------

    def find(self, id: str) -> Asked:
        if id not in self.questions.asked:
            raise Refusal("missing", f"there is no question {id!r}.")
        return self.questions.asked[id]

    async def gold(self, id: str, golds: tuple[str, ...]) -> Asked:
        """The right answer: grade, and teach in the background."""
        owner = self.owner
        async with owner.turn:
            asked = self.find(id)
            if asked.golds or asked.outcome == "agent_failed":
                raise Refusal(
                    "conflict",
                    f"question {id} has its gold already."
                    if asked.golds
                    else f"question {id} was never answered: the agent failed.",
                )
            f1, em = 0.0, 0.0
            if asked.answer is not None:
                f1, em = grade(asked.answer, golds, abstain(golds))
            durable = owner.commit([Graded(owner.iteration + 1, id, golds, f1, em, asked.answer)])
        await asyncio.shield(durable)
        self._measure()
        if self.gate is not None:
            self.gate.answered(Asking(id, asked.question, golds, abstain(golds)))
        self._wake.set()
        return self.questions.asked[id]

    async def verdict(self, id: str, right: bool, client: str) -> Asked:
        """Only right or wrong: it is counted, and nothing is learnt from it."""
        owner = self.owner
        async with owner.turn:
            asked = self.find(id)
            if asked.golds or asked.right is not None:
                raise Refusal("conflict", f"question {id} has been judged already.")
            data = {"question": id, "right": right, "by": client}
            durable = owner.commit([Noted(owner.iteration + 1, "feedback", data)])
        await asyncio.shield(durable)
        self._measure()
        return self.questions.asked[id]

    def _measure(self) -> None:
        for row in self.questions.rows[self._written :]:
            if self._file is not None:
                self._file.add(row)
        self._written = len(self.questions.rows)

    # -- learning -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Learn in the background from now on, beginning with what an earlier process left."""
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker

    async def _work(self) -> None:
        while True:
            await self.learn()
            self._wake.clear()
            if not self.questions.to_learn:
                await self._wake.wait()

    async def learn(self) -> None:
        """Teach everything that has its gold and was not taught yet."""
        while waiting := self.questions.to_learn:
            await self._lesson(waiting[0])

    async def _lesson(self, id: str) -> None:
        asked = self.questions.asked[id]
        verdict: Verdict = "out of budget" if asked.answer is None else "right" if asked.f1 == 1.0 else "wrong"
        errands = self.desk.errands(self.owner.store, asked.question) if self.settings.strategy == "class" else ()
        turns = self.questions.turns.get(id, ())
        if self.gate is not None:
            await self._doubt(self.gate, asked, turns)
        task = Backward(asked.question, turns, asked.golds, asked.f1 or 0.0, verdict, errands)
        await self.backward(task, "backward", id, asked.question, self.settings.backward_budget)

    async def _doubt(self, gate: Gate, asked: Asked, turns: Sequence[Turn]) -> None:
        """Withdraw what this question shows to cost answers: admitted once, on evidence that has come since."""
        owner, asking = self.owner, Asking(asked.id, asked.question, asked.golds, abstain(asked.golds))
        for document, cost in await self._doubts.hear(owner, gate, asking, turns, asked.f1 or 0.0):
            async with owner.turn:
                if document not in owner.store:
                    continue
                number, reason = owner.iteration + 1, f"{asked.id} is answered better without [{document}]"
                step = await owner.environment.step(Delete(document), "curator")
                data = {"question": asked.id, "verdict": "withdrawn", "reason": reason, "cost": round(cost, 6)}
                owner.commit(
                    [
                        Began(number, "idle", "gate"),
                        Acted(number, "idle", 1, step.action, step.result, step.verdict),
                        Noted(number, "admission", data),
                        Ended(number, "idle", "done"),
                    ]
                )
                self.withdrawn += 1
        await owner.durable()

    async def backward(self, task: Backward, phase: Phase, id: str, text: str, budget: int) -> Trial:
        """A curator's pass: played on a copy, judged by the gate, landed or kept as refused."""
        owner, settings = self.owner, self.settings
        for attempt in range(1, TRIES + 1):
            made = await trial(owner, self.curator, task, budget, settings.memory)
            made, verdict = await self._judged(made)
            await prepare_landing(owner, made)
            async with owner.turn:
                refused = verdict is not None and verdict["verdict"] == "quarantined"
                fresh = unchanged(owner, made)
                if not fresh and attempt < TRIES and not refused:
                    continue
                number = owner.iteration + 1
                began = Began(number, phase, settings.curator, id, text)
                notes = [Noted(number, "admission", {"question": id, **verdict})] if verdict else []
                if refused and verdict is not None:
                    quarantine(owner, began, made, notes, str(verdict["reason"]))
                    self.refused += 1
                elif fresh:
                    await land(owner, began, made, notes)
                    self.admitted += made.changed
                else:
                    reason = "documents it builds on were changed by others each time it was played"
                    data = {"question": id, "verdict": "quarantined", "reason": reason}
                    quarantine(owner, began, made, [Noted(number, "admission", data)], reason)
                    self.refused += 1
            break
        await owner.durable()
        return made

    async def _judged(self, made: Trial) -> tuple[Trial, dict[str, Any] | None]:
        """What the gate says of a trial that changed something: the part of it that may land, and the verdict.

        No verdict where there is no gate or nothing to judge.
        """
        if self.gate is None or not made.changed:
            return made, None
        before = made.base.environment()
        found = await self.gate.judge(before, made.environment, made.touched, self.owner.iteration)
        withheld = [made.environment.store[id].text for id in found.withheld]
        if withheld and not made.touched <= set(found.withheld):
            made = without(made, found.withheld)
            rest = await self.gate.judge(before, made.environment, made.touched, self.owner.iteration)
            found = msgspec.structs.replace(rest, reason=rest.reason or found.reason)
        data: dict[str, Any] = msgspec.to_builtins(found)
        del data["admitted"]
        return made, {"verdict": "admitted" if found.admitted else "quarantined", **data, "withheld": withheld}


def abstain(golds: tuple[str, ...]) -> bool:
    """Whether the right answer is that there is none."""
    return bool(golds) and all(abstains(gold) for gold in golds)


def settings_of(place: str | Path, **given: str | int | None) -> Settings:
    """The settings a store was trained with, else the defaults; what is given goes first."""
    settings = Settings()
    if is_url(place):
        opened = open_place(place)
        known = {} if opened.genesis is None else opened.genesis.settings
        settings = msgspec.convert(
            {name: known[name] for name in Settings.__struct_fields__ if name in known}, Settings
        )
        opened.close()
    elif (Path(place) / "run.json").exists():
        settings = Run(Path(place)).settings
    else:
        settings = Settings(search=search_of(open_place(place)))
    chosen = {name: value for name, value in given.items() if value is not None}
    if (strategy := chosen.get("strategy", settings.strategy)) not in STRATEGIES:
        raise BadInput(f"there is no strategy {strategy!r}; use {' or '.join(STRATEGIES)}.")
    return msgspec.structs.replace(settings, **chosen)
