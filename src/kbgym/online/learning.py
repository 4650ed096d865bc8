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

import msgspec

from kbgym.actions import Action, Answer, Delete, Error
from kbgym.environment import Step
from kbgym.episode import Transcript
from kbgym.errors import BadInput
from kbgym.grading import abstains, score
from kbgym.online.agenda_follower import Desk
from kbgym.online.asked import Asked, Questions
from kbgym.online.measures import MeasureFile
from kbgym.online.withdrawal import Withdrawals
from kbgym.policy import Agent, Backward, Turn, Verdict
from kbgym.protocol.asking import Asking
from kbgym.protocol.gate import Gate, judged
from kbgym.protocol.run import Run, Settings
from kbgym.protocol.train import STRATEGIES
from kbgym.protocol.trial import (
    TRIES,
    Trial,
    forward,
    land,
    record_forward,
    refuse,
    trial,
    unchanged,
)
from kbgym.search.live import LiveEngine
from kbgym.trace.events import Acted, Began, Ended, Graded, Noted, Phase
from kbgym.trace.live import LiveStore, Snapshot
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
        live: LiveStore,
        questions: Questions,
        desk: Desk,
        reader: Agent,
        curator: Agent,
        settings: Settings,
        gate: Gate | None = None,
    ) -> None:
        self.live, self.questions, self.desk, self.gate = live, questions, desk, gate
        self.settings = settings
        self.reader, self.curator = reader, curator
        self._open: OrderedDict[str, Open] = OrderedDict()
        self._opened = 0
        self._wake = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        # A database keeps the trace, from which the rows come, and no file beside it.
        self._file = MeasureFile(live.folder, questions.rows) if live.folder is not None else None
        self._written = len(questions.rows)
        self._withdrawals = Withdrawals()
        self.admitted = self.refused = self.withdrawn = 0
        for asked in questions.asked.values():
            if gate is not None and asked.golds:
                gate.answered(Asking(asked.id, asked.question, asked.golds, abstain(asked.golds)))

    def warm(self) -> None:
        """Have the embedding model opened beside the loop, before the first text that needs it."""
        if isinstance(engine := self.live.environment.engine, LiveEngine):
            engine.embedding.warm()

    # -- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, question: str, client: str, id: str | None = None) -> Asked:
        """The serving reader answers."""
        settings = self.settings
        transcript, base = await forward(self.live, self.reader, question, settings.forward_budget, settings.memory)
        return await self._answered(question, settings.reader, transcript, base, id)

    async def open(self, question: str, client: str) -> tuple[str, Open]:
        """The client's own agent will answer, on the store as it is now."""
        async with self.live.looking():
            base = self.live.snapshot()
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
        live = self.live
        async with live.turn():
            number = live.iteration + 1
            id = id or f"s{number}"
            record_forward(live, Began(number, "forward", agent, id, question), transcript, base)
            durable = live.commit()
        await asyncio.shield(durable)
        return self.questions.asked[id]

    # -- feedback -----------------------------------------------------------------------------------------------------

    def find(self, id: str) -> Asked:
        if id not in self.questions.asked:
            raise Refusal("missing", f"there is no question {id!r}.")
        return self.questions.asked[id]

    async def gold(self, id: str, golds: tuple[str, ...]) -> Asked:
        """The right answer: grade, and teach in the background."""
        live = self.live
        async with live.turn():
            asked = self.find(id)
            if asked.golds or asked.outcome == "agent_failed":
                raise Refusal(
                    "conflict",
                    f"question {id} has its gold already."
                    if asked.golds
                    else f"question {id} was never answered: the agent failed.",
                )
            f1, em = score(asked.answer, golds, abstain(golds))
            live.record(Graded(live.iteration + 1, id, golds, f1, em, asked.answer))
            durable = live.commit()
        await asyncio.shield(durable)
        self._measure()
        if self.gate is not None:
            self.gate.answered(Asking(id, asked.question, golds, abstain(golds)))
        self._wake.set()
        return self.questions.asked[id]

    async def verdict(self, id: str, right: bool, client: str) -> Asked:
        """Only right or wrong: it is counted, and nothing is learnt from it."""
        live = self.live
        async with live.turn():
            asked = self.find(id)
            if asked.golds or asked.right is not None:
                raise Refusal("conflict", f"question {id} has been judged already.")
            data = {"question": id, "right": right, "by": client}
            live.record(Noted(live.iteration + 1, "feedback", data))
            durable = live.commit()
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
        errands = self.desk.errands(self.live.store, asked.question) if self.settings.strategy == "class" else ()
        turns = self.questions.turns.get(id, ())
        if self.gate is not None:
            await self._withdraw(self.gate, asked, turns)
        task = Backward(asked.question, turns, asked.golds, asked.f1 or 0.0, verdict, errands)
        await self.backward(task, "backward", id, asked.question, self.settings.backward_budget)

    async def _withdraw(self, gate: Gate, asked: Asked, turns: Sequence[Turn]) -> None:
        """Withdraw what this question shows to cost answers: admitted once, on evidence that has come since."""
        live, asking = self.live, Asking(asked.id, asked.question, asked.golds, abstain(asked.golds))
        for document, cost in await self._withdrawals.costly(live, gate, asking, turns, asked.f1 or 0.0):
            async with live.turn():
                if document not in live.store:
                    continue
                number, reason = live.iteration + 1, f"{asked.id} is answered better without [{document}]"
                step = await live.environment.carry_out(Delete(document))
                data = {"question": asked.id, "verdict": "withdrawn", "reason": reason, "cost": round(cost, 6)}
                live.record(Began(number, "idle", "gate"))
                live.record(Acted(number, "idle", 1, step.action, step.result, step.verdict), step.observation)
                live.record(Noted(number, "admission", data))
                live.record(Ended(number, "idle", "done"))
                live.commit()
                self.withdrawn += 1
        await live.durable()

    async def backward(self, task: Backward, phase: Phase, id: str, text: str, budget: int) -> Trial:
        """A curator's pass: played on a copy, judged by the gate, landed or kept as refused."""
        live, settings = self.live, self.settings
        for attempt in range(1, TRIES + 1):
            made = await trial(live, self.curator, task, budget, settings.memory)
            made, verdict = await judged(self.gate, made, live.iteration)
            await live.prepare([step.action for step in made.edits])
            async with live.turn():
                refused = verdict is not None and verdict["verdict"] == "quarantined"
                fresh = unchanged(live, made)
                if not fresh and not refused:
                    if attempt < TRIES:
                        continue
                    reason = "documents it builds on were changed by others each time it was played"
                    refused, verdict = True, {"verdict": "quarantined", "reason": reason}
                number = live.iteration + 1
                live.record(Began(number, phase, settings.curator, id, text))
                if refused:
                    refuse(live, number, phase, made)
                    self.refused += 1
                else:
                    await land(live, number, phase, made)
                    self.admitted += made.changed
                if verdict is not None:
                    live.record(Noted(number, "admission", {"question": id, **verdict}))
                passed = made.transcript
                live.record(Ended(number, phase, passed.outcome, passed.failure, passed.usage))
                live.commit()
            break
        await live.durable()
        return made


def abstain(golds: tuple[str, ...]) -> bool:
    """Whether the right answer is that there is none."""
    return bool(golds) and all(abstains(gold) for gold in golds)


def settings_of(place: str | Path, **given: str | None) -> Settings:
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
    chosen = {name: value for name, value in given.items() if value is not None}
    if (strategy := chosen.get("strategy", settings.strategy)) not in STRATEGIES:
        raise BadInput(f"there is no strategy {strategy!r}; use {' or '.join(STRATEGIES)}.")
    return msgspec.structs.replace(settings, **chosen)
