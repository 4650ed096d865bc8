"""Staged edits: a pass is played on a copy of the store, then applied to the live store as a whole or rejected.

A pass plays on a snapshot of the store, so that nothing waits for its agent. When it ends, its steps are appended to
the trace. A step whose result would differ by then is recorded as a note, because a replay could not repeat it. So is
every edit of a rejected pass, which is never applied to the live store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from kbgym.gym.actions import Action, Added, Correct, Corrected, Error, Merged, Result
from kbgym.gym.environment import Environment, Step, advice_of, apply
from kbgym.gym.episode import Transcript, play
from kbgym.gym.policy import Agent, Backward
from kbgym.gym.tools import documents_named, is_editing
from kbgym.trace.events import Acted, Began, Ended, Noted, Phase
from kbgym.trace.live import LiveStore, Snapshot

_Naming = TypeVar("_Naming", bound=Action | Result)
TRIES = 3  # additional attempts to play a pass whose documents changed in the meantime


class StagedEdits(msgspec.Struct, frozen=True, eq=False):
    """A pass played on a copy of the store: its steps, the initial snapshot, and the final copy."""

    transcript: Transcript
    base: Snapshot
    environment: Environment

    @property
    def edits(self) -> list[Step]:
        return [step for step in self.transcript.steps if _edits(step)]

    @property
    def changed(self) -> bool:
        """Return True if the copy differs from the original store; edits may cancel out."""
        return self.environment.store.fingerprint != self.base.store.fingerprint


async def stage(live: LiveStore, curator: Agent, task: Backward, budget: int, memory: int) -> StagedEdits:
    """Play a curator's pass on a copy of the store."""
    async with live.read():
        base, engine = live.snapshot(), live.environment.engine.overlay()
    environment = Environment(base.store.copy(), engine, live.environment.judge, base.ranking, base.observations)
    return StagedEdits(await play(curator(), environment, "curator", task, budget, memory), base, environment)


def unchanged(live: LiveStore, staged: StagedEdits) -> bool:
    """Return True if no document that the edits depend on has changed since the pass began."""
    then, now = staged.base.store, live.store
    if then.fingerprint == now.fingerprint:
        return True
    named = [id for step in staged.edits for id in _changed_by(step.action) if id in then]
    return all(id in now and (now[id].text, now[id].links) == (then[id].text, then[id].links) for id in named)


# -- into the trace: the caller holds the turn and commits ------------------------------------------------------------


def record_forward(live: LiveStore, began: Began, transcript: Transcript, base: Snapshot) -> None:
    """Record a finished forward pass."""
    live.record(began)
    recorder = _Recorder(live, began.iteration, "forward", "stale", base.iteration)
    for number, step in enumerate(transcript.steps, 1):
        recorder.repeat(number, step, {})
    live.record(Ended(began.iteration, "forward", transcript.outcome, transcript.failure, transcript.usage))


async def apply_edits(live: LiveStore, iteration: int, phase: Phase, staged: StagedEdits) -> None:
    """Repeat the actions of the pass on the live store. Requires `unchanged`."""
    renamed: dict[str, str] = {}
    recorder = _Recorder(live, iteration, phase, "stale", staged.base.iteration)
    for number, step in enumerate(staged.transcript.steps, 1):
        if _edits(step):
            done = await live.environment.carry_out(_rename(step.action, renamed))
            renamed.update(zip(_made(step.result), _made(done.result), strict=False))
            live.record(Acted(iteration, phase, number, done.action, done.result, done.verdict), done.observation)
        else:
            recorder.repeat(number, step, renamed)


def reject_edits(live: LiveStore, iteration: int, phase: Phase, staged: StagedEdits) -> None:
    """Record a rejected pass: its searches and reads as actions, its edits as notes."""
    recorder = _Recorder(live, iteration, phase, "refused")
    for number, step in enumerate(staged.transcript.steps, 1):
        if is_editing(step.action) or isinstance(step.result, Error):
            recorder.note(number, step.action, step.result)
        else:
            recorder.repeat(number, step, {})


class _Recorder(NamedTuple):
    """Records steps of a pass that changed nothing; `kind` is that of a note, `at` the iteration of the copy."""

    live: LiveStore
    iteration: int
    phase: Phase
    kind: str
    at: int | None = None

    def repeat(self, number: int, step: Step, renamed: dict[str, str]) -> None:
        """Record a step as an action if its result is still valid, else as a note."""
        live, action, result = self.live, _rename(step.action, renamed), _rename(step.result, renamed)
        scratch = live.store if not is_editing(action) else live.store.copy()
        if apply(scratch, action, advice_of(result, step.verdict)) == result:
            acted = Acted(self.iteration, self.phase, number, action, result, step.verdict)
            live.record(acted, live.environment.observed(result))
        else:
            self.note(number, action, step.result)

    def note(self, number: int, action: Action, result: Result) -> None:
        data = {"phase": self.phase, "step": number, "action": action, "result": result}
        data |= {} if self.at is None else {"at": self.at}
        self.live.record(Noted(self.iteration, self.kind, msgspec.to_builtins(data)))


# -- steps ----------------------------------------------------------------------------------------------------------


def _changed_by(action: Action) -> tuple[str, ...]:
    """Return the ids of the documents that an edit changes."""
    return action.supersedes if isinstance(action, Correct) else documents_named(action)[:1]


def _edits(step: Step) -> bool:
    return is_editing(step.action) and not isinstance(step.result, Error)


def _made(result: Result) -> Iterator[str]:
    match result:
        case Added(id) | Merged(id) | Corrected(id):
            yield id


def _rename(value: _Naming, renamed: dict[str, str]) -> _Naming:
    """Return an action or a result with the pass's ids replaced by those of the live store."""
    fields: dict[str, Any] = {}
    for name in ("id", "ids", "links", "source", "target", "targets") if renamed else ():
        if isinstance(held := getattr(value, name, ()), str):
            fields[name] = renamed.get(held, held)
        elif held:
            fields[name] = tuple(renamed.get(id, id) for id in held)
    return msgspec.structs.replace(value, **fields)
