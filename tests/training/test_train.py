"""Training: deterministic, resumable to the byte, and what the trace says is what happened."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import msgspec
import pytest
from crash_recovery import killed

from kbgym.analysis.health import coverage
from kbgym.api.factory import agents_named, embedder_named
from kbgym.errors import BadInput
from kbgym.gym.actions import Add, Answer, Done, Found, LinkMany, Search
from kbgym.gym.policy import AgentFailed
from kbgym.search.factory import engine_for
from kbgym.trace.events import TUNED, Acted, Began, Committed, Ended, Graded, Noted
from kbgym.trace.folder import StoreFolder
from kbgym.trace.history import log
from kbgym.training.lessons import schedule
from kbgym.training.run import Run, Settings
from kbgym.training.session import Agents
from kbgym.training.trainer import Trainer

SMALL = Settings(questions=20, epochs=2, embedder="hash")


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Everything a run holds that must not depend on clocks."""
    return {name: (folder / name).read_bytes() for name in ("trace.jsonl", "run.json")}


def test_two_runs_are_identical_to_the_byte(tmp_path, start):
    for name in ("one", "two"):
        asyncio.run(start(tmp_path / name).train())
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


def test_threshold_of_the_slot_is_noted_and_used_by_whoever_opens_the_store(tmp_path, start, small_world):
    supports = {question.text: question.support for question in small_world.questions}

    class Curator:
        """Writes an index in most words of the question and links it to the evidence."""

        def __init__(self):
            self.left = [Add, LinkMany]

        async def act(self, view):
            question = view.task.question
            if not self.left or not supports[question]:
                return Done()
            if self.left.pop(0) is Add:
                return Add(" ".join(question.split()[:-1]))
            return LinkMany(view.history[-1].observation.documents[0].id, supports[question])

    settings = msgspec.structs.replace(SMALL, ranking="slot", slots=2)
    trainer = start(tmp_path / "run", settings)
    trainer.agents = Agents(trainer.agents.reader, Curator)
    asyncio.run(trainer.train())
    folder = StoreFolder(tmp_path / "run")
    noted = [event for event in folder.events if isinstance(event, Noted) and event.kind == TUNED]
    assert [event.iteration for event in noted] == [20, 40]
    assert folder.store().tuned == trainer.store.tuned == {"slots": 2, **noted[-1].data}
    assert folder.store(20).tuned == {"slots": 2, **noted[0].data}
    results = [event.result for event in folder.events if isinstance(event, Acted)]
    assert max(len(result.learnt) for result in results if isinstance(result, Found)) == 2
    reopened = start(tmp_path / "run", settings)
    assert reopened.store.tuned == trainer.store.tuned
    asyncio.run(reopened.live.close())


def test_every_question_is_asked_once_an_epoch_in_an_order_of_its_own(small_world):
    lessons = schedule(small_world, SMALL)
    first = [question.id for epoch, question in lessons if epoch == 1]
    second = [question.id for epoch, question in lessons if epoch == 2]
    assert sorted(first) == sorted(second) and len(set(first)) == 20
    assert first != second


def test_the_trace_tells_the_whole_protocol(tmp_path, start):
    trainer = start(tmp_path / "run")
    asyncio.run(trainer.train())
    events = StoreFolder(tmp_path / "run").events
    assert sum(isinstance(e, Committed) for e in events) == 40
    assert sum(isinstance(e, Graded) for e in events) == 40
    notes = [event for event in events if isinstance(event, Noted)]
    assert [(note.kind, note.iteration, note.data["epoch"]) for note in notes] == [
        ("eval", 0, 0),
        ("eval", 20, 1),  # with the lesson that ends the epoch
        ("eval", 40, 2),
    ]
    assert all(isinstance(events[events.index(note) + 1], Committed) for note in notes[1:])
    assert all(note.data["n"] == 30 for note in notes)
    by_iteration: dict[int, list[str]] = {}
    for event in events:
        if isinstance(event, Began | Ended):
            by_iteration.setdefault(event.iteration, []).append(event.phase)
    assert all(phases == ["forward", "forward", "backward", "backward"] for phases in by_iteration.values())
    assert StoreFolder(tmp_path / "run").store().fingerprint == trainer.store.fingerprint


def test_whoever_watches_is_told_how_far_it_is_and_how_it_goes(tmp_path, start):
    said = []
    trainer = start(tmp_path / "run", Settings(questions=12, epochs=2, embedder="hash", eval=False))
    asyncio.run(trainer.train(lambda *words: said.append(words)))
    folder = StoreFolder(tmp_path / "run")
    grades = [event.f1 for event in folder.events if isinstance(event, Graded)]
    assert [(done, total) for done, total, _ in said] == [(n, 24) for n in range(1, 25)]
    for done, _, note in said:
        store, recent = folder.store(done), grades[max(0, done - 20) : done]
        f1 = sum(recent) / len(recent)
        assert note == f"forward F1 {f1:.2f}  documents {len(store):,}  links {store.links:,}"


def test_a_model_is_called_what_it_is_and_the_first_line_remembers_it(tmp_path, start, small_world):
    """Whatever name it was given on the command line; a role without a model has the name of the setting."""
    settings = Settings(questions=10, epochs=1, embedder="hash", eval=False)
    run = Run.open_or_create(tmp_path / "run", small_world, settings)
    agents = agents_named(settings)
    described = {"reader": {"agent": "llm:a-model"}}
    trainer = Trainer(
        run,
        Agents(agents.reader, agents.curator, None, described),
        partial(engine_for, embedder=embedder_named("hash")),
    )
    asyncio.run(trainer.train())
    folder = StoreFolder(tmp_path / "run")
    assert {(e.phase, e.agent) for e in folder.events if isinstance(e, Began)} == {
        ("forward", "llm:a-model"),
        ("backward", "reference"),
    }
    kept = {
        name: value
        for name, value in msgspec.to_builtins(settings).items()
        if name not in ("search", "begins", "slots", "slot_threshold")
    }
    assert folder.genesis.settings == {**kept, "agents": described}, "what is off is not kept"
    asyncio.run(start(tmp_path / "plain", settings).train())
    assert StoreFolder(tmp_path / "plain").genesis.settings == kept


def test_stopping_anywhere_and_resuming_gives_the_same_bytes(tmp_path, start):
    asyncio.run(start(tmp_path / "whole").train())

    class Stop(Exception):
        pass

    for after in (1, 7, 20, 33):
        folder = tmp_path / f"stopped-{after}"

        def stop(done: int, total: int, note: str, after: int = after) -> None:
            if done == after:
                raise Stop

        with pytest.raises(Stop):
            asyncio.run(start(folder).train(stop))
        asyncio.run(start(folder).train())
        assert bytes_of(folder) == bytes_of(tmp_path / "whole")


def test_the_agenda_survives_an_interruption_because_it_is_the_traces(tmp_path, start):
    settings = Settings(questions=20, epochs=2, embedder="hash", eval=False, strategy="class")
    asyncio.run(start(tmp_path / "whole", settings).train())

    class Stop(Exception):
        pass

    def stop(done: int, total: int, note: str) -> None:
        if done == 13:
            raise Stop

    with pytest.raises(Stop):
        asyncio.run(start(tmp_path / "stopped", settings).train(stop))
    asyncio.run(start(tmp_path / "stopped", settings).train())
    assert bytes_of(tmp_path / "stopped") == bytes_of(tmp_path / "whole")


def test_the_strategy_class_without_an_agenda_is_refused(tmp_path, small_world):
    run = Run.open_or_create(tmp_path / "run", small_world, msgspec.structs.replace(SMALL, strategy="class"))
    whole = agents_named(run.settings)
    engine = partial(engine_for, embedder=embedder_named("hash"))
    with pytest.raises(BadInput):
        Trainer(run, Agents(whole.reader, whole.curator), engine)


def test_class_covers_more_than_paper_with_the_same_questions_and_budget(tmp_path, start):
    covered = {}
    for strategy in ("paper", "class"):
        trainer = start(tmp_path / strategy, Settings(questions=20, epochs=2, embedder="hash", strategy=strategy))
        asyncio.run(trainer.train())
        covered[strategy] = coverage(trainer.store).direct
    assert covered["class"] > covered["paper"] + 0.1


def test_resuming_a_finished_run_changes_nothing(tmp_path, start):
    asyncio.run(start(tmp_path / "run").train())
    before = bytes_of(tmp_path / "run")
    asyncio.run(start(tmp_path / "run").train())
    assert bytes_of(tmp_path / "run") == before


def test_other_settings_on_the_same_folder_are_refused(tmp_path, small_world):
    Run.open_or_create(tmp_path / "run", small_world, SMALL)
    with pytest.raises(BadInput, match="epochs 2, not 3"):
        Run.open_or_create(tmp_path / "run", small_world, Settings(questions=20, epochs=3, embedder="hash"))


def test_a_failing_agent_is_counted_apart_and_never_graded(tmp_path, start):
    trainer = start(tmp_path / "run")

    class Failing:
        async def act(self, view):
            raise AgentFailed("no valid reply")

    trainer.agents = Agents(Failing, agents_named(SMALL).curator)
    trainer.settings = Settings(questions=20, epochs=2, embedder="hash", eval=False)
    asyncio.run(trainer.train())
    events = StoreFolder(tmp_path / "run").events
    assert not [e for e in events if isinstance(e, Graded)]
    failed = [e for e in events if isinstance(e, Ended) and e.outcome == "agent_failed"]
    assert len(failed) == 40 and all(e.failure == "no valid reply" for e in failed)


def test_the_backward_pass_is_told_one_of_three_outcomes(tmp_path, start):
    told = []

    class Dawdler:
        """Never answers."""

        async def act(self, view):
            return Search("anything")

    class Wrong:
        async def act(self, view):
            return Answer("a wrong answer")

    class Listener:
        async def act(self, view):
            told.append((view.task.verdict, view.task.f1, len(view.task.forward), view.remaining))
            return Done()

    for number, reader in enumerate((Dawdler, Wrong)):
        trainer = start(tmp_path / f"run{number}", Settings(questions=10, epochs=1, embedder="hash", eval=False))
        trainer.agents = Agents(reader, Listener)
        asyncio.run(trainer.train())
    assert told[0] == ("out of budget", 0.0, 15, 30)
    assert ("wrong", 0.0, 1, 30) in told


def test_only_a_whole_answer_is_right(tmp_path, start, small_world):
    """An answer in part has a score and is told as wrong all the same."""
    golds = {question.text: question.golds[0] for question in small_world.split("train")}
    told = []

    def reader(more):
        class Knowing:
            async def act(self, view):
                return Answer(golds[view.task.question] + more)

        return Knowing

    class Listener:
        async def act(self, view):
            told.append((view.task.verdict, view.task.f1, view.task.golds[0], view.task.question))
            return Done()

    for number, more in enumerate(("", " or so")):
        trainer = start(tmp_path / f"run{number}", Settings(questions=10, epochs=1, embedder="hash", eval=False))
        trainer.agents = Agents(reader(more), Listener)
        asyncio.run(trainer.train())
    whole, part = told[:10], told[10:]
    assert all(row == ("right", 1.0, golds[row[3]], row[3]) for row in whole)
    assert {verdict for verdict, *_ in part} == {"wrong"} and max(f1 for _, f1, *_ in part) > 0.3


@pytest.mark.parametrize("strategy", ["paper", "class"])
def test_the_backward_pass_is_given_the_agendas_tasks_where_there_is_an_agenda(tmp_path, start, strategy):
    given = []

    class Listener:
        async def act(self, view):
            given.append((view.task.question, view.task.agenda))
            return Done()

    settings = Settings(questions=10, epochs=1, embedder="hash", eval=False, strategy=strategy)
    trainer = start(tmp_path / "run", settings)
    trainer.agents = Agents(trainer.agents.reader, Listener)
    asyncio.run(trainer.train())
    assert len(given) == 10
    if strategy == "paper":
        assert all(agenda == () for _, agenda in given)
    else:
        assert all(agenda for _, agenda in given)
        assert all(
            index_task.value in question
            for question, agenda in given
            for index_task in agenda
            if index_task.reason == "named"
        )
        assert any(index_task.reason == "asked" for _, agenda in given for index_task in agenda), "of earlier questions"


def test_no_two_lessons_side_by_side_are_given_the_same_key(tmp_path, start):
    under_way = []
    most = 0

    class Slow:
        async def act(self, view):
            nonlocal most
            keys = {(index_task.kind, index_task.value, index_task.then) for index_task in view.task.agenda}
            assert keys and not any(keys & others for others in under_way)
            under_way.append(keys)
            most = max(most, len(under_way))
            await asyncio.sleep(0.01)
            under_way.remove(keys)
            return Done()

    settings = Settings(questions=10, epochs=1, embedder="hash", eval=False, strategy="class", batch_size=3)
    trainer = start(tmp_path / "run", settings)
    trainer.agents = Agents(trainer.agents.reader, Slow)
    asyncio.run(trainer.train())
    ends = [event.outcome for event in StoreFolder(tmp_path / "run").events if isinstance(event, Ended)]
    assert most > 1 and "agent_failed" not in ends


BATCH = Settings(questions=20, epochs=2, batch_size=8, embedder="hash", eval=False)


def slow(agent, shortest=0.001):
    """The same agent with a pause before every action, as a model has; passes then overtake one another."""

    class Slow:
        def __init__(self):
            self.policy = agent()

        async def act(self, view):
            await asyncio.sleep(shortest * (1 + len(view.task.question) % 7))
            return await self.policy.act(view)

    return Slow


def slowed(trainer):
    trainer.agents = Agents(slow(trainer.agents.reader), slow(trainer.agents.curator))
    return trainer


def commits_of(folder: Path) -> list[Committed]:
    return [event for event in StoreFolder(folder).events if isinstance(event, Committed)]


def test_lessons_side_by_side_end_in_commits_of_their_own_and_replay(tmp_path, start):
    trainer = slowed(start(tmp_path / "run", BATCH))
    asyncio.run(trainer.train())
    folder = StoreFolder(tmp_path / "run")
    assert [e.iteration for e in commits_of(tmp_path / "run")] == list(range(1, 41))
    assert folder.store().fingerprint == trainer.store.fingerprint
    graded = [event.iteration for event in folder.events if isinstance(event, Graded)]
    assert sorted(graded) == list(range(1, 41))
    assert graded != sorted(graded), "no lesson overtook another: nothing was side by side"
    first = [e.epoch for e in folder.events if isinstance(e, Began)]
    assert first == sorted(first), "a lesson of the second epoch began before the first was over"


def test_a_lesson_cut_short_goes_on_from_its_last_committed_step(tmp_path, start):
    """Kill at every commit: each lesson is graded once, no step is lost or done twice, and the trace replays."""

    class Stop(Exception):
        pass

    def stop(done: int, total: int, note: str) -> None:
        if done % 3 == 0:
            raise Stop

    folder, stops, carried = tmp_path / "run", 0, 0
    while True:
        trainer = slowed(start(folder, BATCH))
        carried += sum(not lesson.finished and bool(lesson.forward) for lesson in trainer.progress.begun.values())
        try:
            asyncio.run(trainer.train(stop))
            break
        except Stop:
            stops += 1
    assert stops > 5 and carried > 20
    events = StoreFolder(folder).events
    for phase, budget in (("forward", 15), ("backward", 30)):
        for iteration in range(1, 41):
            steps = [e.step for e in events if isinstance(e, Acted) and (e.iteration, e.phase) == (iteration, phase)]
            assert steps == list(range(1, len(steps) + 1)) and 0 < len(steps) <= budget
    assert sorted(e.iteration for e in events if isinstance(e, Graded)) == list(range(1, 41))
    assert len({(e.epoch, e.question) for e in events if isinstance(e, Began) and e.phase == "forward"}) == 40
    assert sum(isinstance(e, Ended) for e in events) == 80
    assert len({entry.iteration for entry in log(events)}) == len(log(events)) == 40


def test_a_rollback_while_lessons_were_under_way_returns_to_where_they_were(tmp_path, start):
    asyncio.run(slowed(start(tmp_path / "run", BATCH)).train())
    StoreFolder(tmp_path / "run").rollback(10)
    trainer = start(tmp_path / "run", BATCH)
    assert trainer.position == 10 and len(trainer.progress.begun) > 10
    asyncio.run(trainer.train())
    assert trainer.position == 40
    assert StoreFolder(tmp_path / "run").store().fingerprint == trainer.store.fingerprint


@pytest.mark.slow
def test_kill_9_at_fifty_moments_ends_in_the_same_bytes(tmp_path):
    killed("train", tmp_path, 50)


def test_the_evaluation_keeps_to_the_runs_budget_and_memory(tmp_path, start):
    """The report prints them as the budget, so they must be it."""
    seen = set()

    class Searcher:
        async def act(self, view):
            seen.add((view.remaining, len(view.history)))
            return Search("anything")

    settings = Settings(questions=5, epochs=1, embedder="hash", forward_budget=4, memory=2)
    trainer = start(tmp_path / "run", settings)
    trainer.agents = Agents(Searcher, trainer.agents.curator)
    asyncio.run(trainer._evaluate(0))
    assert seen == {(4, 0), (3, 1), (2, 2), (1, 2)}
