"""Passes over a served store: forward on a snapshot, backward on a trial copy that lands together or not at all.

A pass takes as long as its agent takes, and nobody waits for it: it plays on the store as it was when it began. When it
ends, its steps enter the trace at the place where that happens. A step that would come out differently by then is
kept as a note, because a replay could not repeat it; so is one that was withheld.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from kbgym.actions import (
    Action,
    Added,
    Delete,
    Edit,
    Error,
    Found,
    Link,
    LinkMany,
    Merged,
    Read,
    Result,
    Unlink,
)
from kbgym.environment import Nearest, Step, apply
from kbgym.episode import Transcript, play
from kbgym.policy import Agent, Backward, Forward
from kbgym.serve.owner import Owner, ServedEnvironment, Snapshot, is_editing
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Event, Noted, Phase, RolledBack

TRIES = 3  # how often a pass whose documents changed under it is played again


class Trial(msgspec.Struct, frozen=True, eq=False):
    """A pass played on a copy of its own: what it did, where it began, and the copy as it left it.

    `withheld` are documents it made that were taken out of the copy again and will not land.
    """

    transcript: Transcript
    base: Snapshot
    environment: ServedEnvironment
    withheld: frozenset[str] = frozenset()

    @property
    def edits(self) -> list[Step]:
        done = [
            step for step in self.transcript.steps if is_editing(step.action) and not isinstance(step.result, Error)
        ]
        return [step for step in done if self.withheld.isdisjoint(named_in(step))]

    @property
    def changed(self) -> bool:
        """Whether the copy is another store than the one it was made from; an edit may come to nothing."""
        return self.environment.store.fingerprint != self.base.store.fingerprint

    @property
    def touched(self) -> set[str]:
        """Every document the pass changed or made."""
        named = [id for step in self.edits for id in (*changed_by(step.action), *_made(step.result))]
        return set(named)


def without(made: Trial, withheld: Collection[str]) -> Trial:
    """The trial less documents it made; its copy of the store loses them."""
    for id in withheld:
        made.environment.store.delete(id)
        made.environment.engine.remove(id)
    return Trial(made.transcript, made.base, made.environment, frozenset(withheld))


async def forward(owner: Owner, reader: Agent, question: str, budget: int, memory: int) -> tuple[Transcript, Snapshot]:
    """A reader's pass on the store as it is when the question comes."""
    async with owner.turn:
        base = owner.snapshot()
    return await play(reader(), base.environment(), "reader", Forward(question), budget, memory), base


async def trial(owner: Owner, curator: Agent, task: Backward, budget: int, memory: int) -> Trial:
    """A curator's pass on a copy nobody else sees."""
    async with owner.turn:
        base, engine = owner.snapshot(), owner.engine.overlay()
    environment = ServedEnvironment(base.store.copy(), engine, owner.environment.judge, base.ranking)
    transcript = await play(curator(), environment, "curator", task, budget, memory)
    return Trial(transcript, base, environment)


def record_forward(owner: Owner, began: Began, transcript: Transcript, base: Snapshot) -> Sequence[Event]:
    """A finished forward pass as events true of the live store; the followers hear of each."""
    events: list[Event] = [began]
    owner.tell(began, owner.store)
    for number, step in enumerate(transcript.steps, 1):
        events.append(_repeated(owner.store, began.iteration, "forward", number, step, {}, base.iteration))
        owner.tell(events[-1], owner.store)
    events.append(Ended(began.iteration, "forward", transcript.outcome, transcript.failure))
    owner.tell(events[-1], owner.store)
    return events


def unchanged(owner: Owner, made: Trial) -> bool:
    """Whether every document the trial built on is still what it was when the trial began."""
    then, now = made.base.store, owner.store
    if then.fingerprint == now.fingerprint:
        return True
    named = [id for step in made.edits for id in changed_by(step.action) if id in then]
    return all(id in now and (now[id].text, now[id].links) == (then[id].text, then[id].links) for id in named)


async def prepare_landing(owner: Owner, made: Trial) -> None:
    """Have every vector at hand, and every sentence judged, before the turn is taken."""
    await owner.prepare([step.action for step in made.edits])


async def land(owner: Owner, began: Began, made: Trial, notes: Sequence[Noted]) -> None:
    """Do on the live store what the trial did on its copy; the caller holds the turn and has checked `unchanged`."""
    events: list[Event] = [began]
    owner.tell(began, owner.store)
    renamed: dict[str, str] = {}
    for number, step in enumerate(made.transcript.steps, 1):
        event: Event
        if not made.withheld.isdisjoint(named_in(step)):
            event = Noted(began.iteration, "withheld", msgspec.to_builtins({"step": number, "action": step.action}))
        elif is_editing(step.action) and not isinstance(step.result, Error):
            done = await owner.environment.step(_rename(step.action, renamed), "curator")
            renamed.update(zip(_made(step.result), _made(done.result), strict=False))
            event = Acted(began.iteration, began.phase, number, done.action, done.result, done.verdict)
        else:
            event = _repeated(owner.store, began.iteration, began.phase, number, step, renamed, made.base.iteration)
        events.append(event)
        owner.tell(event, owner.store)
    ending: list[Event] = [
        *notes,
        Ended(began.iteration, began.phase, made.transcript.outcome, made.transcript.failure),
    ]
    for last in ending:
        events.append(last)
        owner.tell(last, owner.store)
    owner.commit(events, told=True)


def quarantine(owner: Owner, began: Began, made: Trial, notes: Sequence[Noted], reason: str) -> None:
    """Keep in the trace what a refused trial did, and that it was rolled back; the live store never has it.

    Two transactions, handed to the disk together: the edits, then the return to the store before them.
    """
    before = owner.iteration
    scratch = owner.store.copy()
    events: list[Event] = [began]
    owner.tell(began, scratch)
    renamed: dict[str, str] = {}
    for number, step in enumerate(made.transcript.steps, 1):
        action = _rename(step.action, renamed)
        if is_editing(action) and not isinstance(step.result, Error):
            result = apply(scratch, action, step.verdict)
            renamed.update(zip(_made(step.result), _made(result), strict=False))
            event: Event = Acted(began.iteration, began.phase, number, action, result, step.verdict)
        else:
            event = _repeated(scratch, began.iteration, began.phase, number, step, renamed, made.base.iteration)
        events.append(event)
        owner.tell(event, scratch)
    ending: list[Event] = [
        *notes,
        Ended(began.iteration, began.phase, made.transcript.outcome, made.transcript.failure),
    ]
    for last in ending:
        events.append(last)
        owner.tell(last, scratch)
    owner.commit(events, scratch, told=True)
    owner.store.never_reissue(scratch)
    owner.commit([RolledBack(owner.iteration + 1, before, reason)])


# -- steps ------------------------------------------------------------------------------------------------------------


def _repeated(
    store: Store, iteration: int, phase: Phase, number: int, step: Step, renamed: dict[str, str], at: int
) -> Event:
    """A step that changed nothing: as it was if it is still true of the store, else as a note."""
    action, result = _rename(step.action, renamed), _rename_result(step.result, renamed)
    advice = Nearest(result.ids) if isinstance(result, Found) else step.verdict
    scratch = store if not is_editing(action) else store.copy()
    if apply(scratch, action, advice) == result:
        return Acted(iteration, phase, number, action, result, step.verdict)
    data = {"phase": phase, "step": number, "at": at, "action": action, "result": step.result}
    return Noted(iteration, "stale", msgspec.to_builtins(data))


def changed_by(action: Action) -> tuple[str, ...]:
    """The documents an action changes by name."""
    match action:
        case Edit(id) | Delete(id) | Link(id) | LinkMany(id) | Unlink(id):
            return (id,)
    return ()


def named_in(step: Step) -> tuple[str, ...]:
    """The document a step opened, changed or made."""
    opened = (step.action.id,) if isinstance(step.action, Read) else ()
    return (*opened, *changed_by(step.action), *_made(step.result))


def _made(result: Result) -> Iterator[str]:
    match result:
        case Added(id) | Merged(id):
            yield id


def _rename(action: Action, renamed: dict[str, str]) -> Action:
    """The same action where documents the trial made have other ids."""
    if not renamed:
        return action
    match action:
        case Read(id):
            return Read(renamed.get(id, id))
        case Edit(id, text):
            return Edit(renamed.get(id, id), text)
        case Delete(id):
            return Delete(renamed.get(id, id))
        case Link(source, target):
            return Link(renamed.get(source, source), renamed.get(target, target))
        case LinkMany(source, targets):
            return LinkMany(renamed.get(source, source), tuple(renamed.get(id, id) for id in targets))
        case Unlink(source, target):
            return Unlink(renamed.get(source, source), renamed.get(target, target))
    return action


def _rename_result(result: Result, renamed: dict[str, str]) -> Result:
    if not renamed:
        return result
    plain = msgspec.to_builtins(result)
    for field in ("id", "ids", "links"):
        value = plain.get(field)
        if isinstance(value, str):
            plain[field] = renamed.get(value, value)
        elif value:
            plain[field] = tuple(renamed.get(id, id) for id in value)
    moved: Result = msgspec.convert(plain, Result)
    return moved
