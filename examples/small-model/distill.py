"""From worlds and a teacher to samples: passes that ended right, as the small model's server will render them.

Every world has other words, half of them invented for it, so that nothing can be spelt from memory. Its questions are
drawn from the pools, hard ones more often, and asked on the flat store and on stores the reference agents trained. A
curator is taught by what the reference curator did for each index_task of its agenda.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from invented import renamed
from notes import working
from small import sample
from small_curator import errand_sample

from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api.factory import agent_of
from kbgym.api.training import train
from kbgym.api.workspace import Workspace
from kbgym.canonical import write_lines, write_whole
from kbgym.errors import BadInput
from kbgym.gym.actions import NOTHING, Action, Answer, Done, Search
from kbgym.gym.environment import Environment
from kbgym.gym.episode import FORWARD_BUDGET, play
from kbgym.gym.grading import grade, score
from kbgym.gym.policy import Backward, Forward, IndexTask, Policy, Steps, Turn, View
from kbgym.search import minilm
from kbgym.search.cache import cache_folder
from kbgym.sync import run_sync
from kbgym.worlds.people import TEMPLATES, Sizes, pool, world_of_people
from kbgym.worlds.people.population import population
from kbgym.worlds.people.templates import HARD
from kbgym.worlds.world import Question, World

STORES = ("flat", "paper", "class")


class Noting:
    """A teacher who says, with an answer, what it rests on."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self.notes = policy, ""

    async def act(self, view: View) -> Action:
        action = await self._policy.act(view)
        if isinstance(action, Answer) and isinstance(self._policy, ReferenceReader) and isinstance(view.task, Forward):
            self.notes = working(view.task.question, self._policy.memory)
        return action


def distill(seed: int, people: int, questions: int, teacher: str = "reference") -> Iterator[dict[str, Any]]:
    """The samples of one world: so many questions of its pools on each store."""
    world = practice_world(seed, people)
    asked = drawn(world, questions, seed)
    with TemporaryDirectory(prefix="kbgym-distill-") as folder:
        for place in stores_of(world, Path(folder)):
            with Workspace(place) as opened:
                yield from _passes(opened, asked, teacher, place.name, Random(f"{seed}:{place.name}"))


class Curating(ReferenceCurator):
    """A teacher that remembers its pass, and where in it each index_task was taken up."""

    view: View

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[IndexTask, int]] = []

    async def act(self, view: View) -> Action:
        self.view = view
        return await super().act(view)

    def _complete(self, index_task: IndexTask) -> Steps[None]:
        self.begun.append((index_task, len(self.view.history)))
        yield from super()._complete(index_task)


def distill_curator(seed: int, people: int) -> Iterator[dict[str, Any]]:
    """The samples of one world for a curator: every task of the lessons after which their question came out right."""
    world, passes = practice_world(seed, people), list[Curating]()

    def curator() -> Policy:
        passes.append(Curating())
        return passes[-1]

    with (
        TemporaryDirectory(prefix="kbgym-distill-") as folder,
        train(world, Path(folder) / "class", strategy="class", eval=False, curator=curator) as opened,
    ):
        environment = Environment(opened.store.as_frozen(), opened.engine)
        for one in passes:
            task = one.view.task
            assert isinstance(task, Backward)
            asked = play(ReferenceReader(), environment, "reader", Forward(task.question), FORWARD_BUDGET)
            if score(run_sync(asked).answer, task.golds, task.golds == ("unknown",)).f1 == 1.0:
                yield from _errands(one, one.view.remaining + len(one.view.history))


def _errands(one: Curating, budget: int) -> Iterator[dict[str, Any]]:
    """The work on each index_task of a pass; where the teacher knew more than the index_task says, it is left out."""
    ends = [start for _, start in one.begun[1:]]
    for (index_task, start), end in zip(one.begun, [*ends, len(one.view.history)], strict=bool(one.begun)):
        turns = one.view.history[start:end]
        told = {lookup.query for lookup in index_task.lookups}
        if all(turn.action.query in told for turn in turns if isinstance(turn.action, Search)):
            about = {"store": "class", "template": index_task.kind, "actions": len(turns)}
            yield {**errand_sample(index_task, [*turns, Turn(Done(), NOTHING)], budget - start), **about}


def practice_world(seed: int, people: int) -> World:
    """Return a practice world with its own vocabulary."""
    return world_of_people(renamed(population(people, seed), seed, _words()), seed, Sizes())


def stores_of(world: World, folder: Path) -> Iterator[Path]:
    """The world's stores, one after the other, each as soon as it is trained."""
    for name in STORES:
        place = folder / name
        if name == "flat":
            world.save(place)
        else:
            train(world, place, strategy=name, eval=False)
        yield place


def _words() -> list[str]:
    """English words: those the embedding model knows."""
    return (minilm.find(cache_folder()) / minilm.VOCABULARY).read_text(encoding="utf-8").split()


def drawn(world: World, count: int, seed: int) -> list[Question]:
    """Questions of all templates, of those of the hard classes twice as many."""
    rng = Random(f"{seed}:distill")
    weights = {name: 2 if template.class_ in HARD else 1 for name, template in TEMPLATES.items()}
    if count < (least := sum(weights.values())):
        raise BadInput(f"ask at least {least} questions of a world, so that every template has one, not {count}.")
    found: list[Question] = []
    for name, weight in weights.items():
        instances = list(pool(world, name))
        found += rng.sample(instances, min(len(instances), count * weight // least))
    rng.shuffle(found)
    return found


def _passes(
    opened: Workspace, questions: list[Question], teacher: str, store: str, rng: Random
) -> Iterator[dict[str, Any]]:
    environment = Environment(opened.store.as_frozen(), opened.engine)
    agent = agent_of(teacher, "reader")
    for question in questions:
        # Some have to be quick: what to do with the last action must be learnt too.
        budget = FORWARD_BUDGET if rng.random() < 0.85 else rng.randint(4, 12)
        policy = Noting(agent())
        passed = run_sync(play(policy, environment, "reader", Forward(question.text), budget))
        if passed.answer is not None and grade(passed.answer, question.golds, question.unanswerable)[0] == 1.0:
            about = {"store": store, "template": question.template, "actions": len(passed.steps)}
            yield {**sample(question.text, passed.turns, budget, policy.notes), **about}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a teacher's correct passes as training samples.")
    parser.add_argument("--out", required=True, type=Path, help="Output folder; one file per world.")
    parser.add_argument("--worlds", default=8, type=int, help="Number of worlds.")
    parser.add_argument("--seed", default=1000, type=int, help="Seed of the first world; evaluate on others.")
    parser.add_argument("--people", default=300, type=int, help="People per world.")
    parser.add_argument("--questions", default=700, type=int, help="Questions per world and store.")
    parser.add_argument("--teacher", default="reference", choices=["reference", "general"])
    parser.add_argument("--role", default="reader", choices=["reader", "curator"])
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    for seed in range(chosen.seed, chosen.seed + chosen.worlds):
        file = chosen.out / f"{seed}.jsonl"
        if file.exists():
            continue
        if chosen.role == "curator":
            samples = distill_curator(seed, chosen.people)
        else:
            samples = distill(seed, chosen.people, chosen.questions, chosen.teacher)
        with write_whole(file) as scratch:
            write_lines(scratch, list(samples))


if __name__ == "__main__":
    main()
