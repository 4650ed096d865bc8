"""Gymnasium environments over one pass: the same tools, budget and grading, for people who train policies.

Observations and actions are text: an action is one JSON tool call, `{"tool": "search", "query": "..."}`; an
observation is the task, the last result and the actions left. A reader's reward is the answer's F1 when the episode
ends, a curator's the gain of later readers by its edits (`integrations/curator_gain.py`), and 0 before. Requires
`gymnasium`; importing this module registers the environments. Vectorised readers share one store and embed their
queries in batches:

    gymnasium.make("kbgym.integrations.gymnasium:kbgym/Reader-v0", place="runs/r0", set="train")
    gymnasium.make_vec("kbgym.integrations.gymnasium:kbgym/Reader-v0", num_envs=16, place="runs/r0", set="train")
    gymnasium.make("kbgym.integrations.gymnasium:kbgym/Curator-v0", place="runs/r0", k=8)
"""

from __future__ import annotations

import asyncio
import string
from abc import abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kbgym.agents.registry import make_agent
from kbgym.api import open
from kbgym.api.factory import beside_on_page, embedder_named
from kbgym.canonical import decode
from kbgym.errors import BadInput, Missing
from kbgym.gym.actions import Action, Invalid
from kbgym.gym.environment import Environment, texts_in
from kbgym.gym.grading import grade_question
from kbgym.gym.policy import Forward
from kbgym.gym.tools import Role, parse
from kbgym.integrations.curator_gain import Curation, CuratorLesson
from kbgym.integrations.tool_calls import PassByCalls, told
from kbgym.search.engine import Engine
from kbgym.search.factory import live_engine_for
from kbgym.search.live import LiveEngine
from kbgym.store import Store
from kbgym.sync import run_sync
from kbgym.training.run import Settings
from kbgym.worlds.kinds import agent_for
from kbgym.worlds.world import Question

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import SyncVectorEnv
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise Missing("the Gymnasium environment needs the extra: pip install 'kbgym[research]'.") from error

ID, CURATOR_ID = "kbgym/Reader-v0", "kbgym/Curator-v0"
_CHARSET = "".join(sorted(string.printable))
_MOST = 100_000
T = TypeVar("T")


class _PassEnv(gymnasium.Env[str, str]):
    """An episode is one pass on one of the questions."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012 - Gymnasium's own convention
    _role: Role
    _hint: str
    _question: Question
    _pass: PassByCalls

    def __init__(self, questions: Sequence[Question]) -> None:
        if not questions:
            raise BadInput("an environment needs at least one question.")
        self.observation_space = _AnyText(max_length=_MOST)
        self.action_space = spaces.Text(max_length=4_096, charset=_CHARSET)
        self.render_mode = "ansi"
        self._questions = tuple(questions)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin(self._questions[0])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Draw a question, or take the one named in `options={"question": id}`."""
        super().reset(seed=seed)
        chosen = (options or {}).get("question")
        among = [question for question in self._questions if chosen in (None, question.id)]
        if not among:
            raise BadInput(f"there is no question {chosen!r} here.")
        self._begin(among[int(self.np_random.integers(len(among))) if chosen is None else 0])
        return self._see(self._hint), self._info()

    def step(self, action: str | Mapping[str, Any]) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one tool call: {"tool": "search", "query": "..."} as an object or as its JSON.

        A malformed call costs an action and returns an error. The last step's info has the grade: `f1`, `em` and the
        `answer`.
        """
        was_over = self._pass.over
        seen = self._see(self._done(self._pass.act(call_in(action, self._role))))
        over, ended = self._pass.over, self._pass.transcript.outcome != "out_of_budget"
        reward = self._reward() if over and not was_over else 0.0
        return seen, reward, ended, over and not ended, self._info()

    def render(self) -> str:
        return self._shown

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to completion. The loop is reused, because creating one takes longer than a step."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
            return self._loop.run_until_complete(work)
        return run_sync(work)

    def _see(self, result: str) -> str:
        self._shown = f"Question: {self._question.text}\n{result}\nActions left: {self._pass.remaining}"[:_MOST]
        return self._shown

    def _info(self) -> dict[str, Any]:
        return {"question": self._question.id, "actions": len(self._pass.transcript.steps)}

    @abstractmethod
    def _begin(self, question: Question) -> None: ...

    @abstractmethod
    def _reward(self) -> float: ...


class ReaderEnv(_PassEnv):
    """One episode is one question on a frozen store, under the settings' budget and ranking."""

    _role = "reader"
    _hint = "Use search, read and answer."

    def __init__(
        self, store: Store, engine: Engine, questions: Sequence[Question], settings: Settings | None = None
    ) -> None:
        settings = settings or Settings()
        shown = settings.observations
        self._environment = Environment(store.as_frozen(), engine, ranking=settings.ranking, observations=shown)
        self._budget = settings.forward_budget
        super().__init__(questions)

    def _begin(self, question: Question) -> None:
        self._question = question
        self._pass = PassByCalls(self._environment, "reader", Forward(question.text), self._budget)

    def _reward(self) -> float:
        return float(grade_question(self._pass.transcript.answer, self._question).f1)

    def _info(self) -> dict[str, Any]:
        answer = self._pass.transcript.answer
        grade = grade_question(answer, self._question) if self._pass.over else None
        return {**super()._info(), **({"f1": grade.f1, "em": grade.em, "answer": answer} if grade else {})}


class CuratorEnv(_PassEnv):
    """One episode is the curator's pass after a reader's, on a copy of the store; every episode begins with the same.

    The reward is `Gain.reward` on k fresh questions, which follow from the seed and the question.
    """

    _role = "curator"
    _pass: CuratorLesson
    _gained: dict[str, Any]

    def __init__(self, curation: Curation, questions: Sequence[Question], price: float = 0.01) -> None:
        self._curation, self._price = curation, price
        super().__init__(questions)

    def _begin(self, question: Question) -> None:
        self._question, self._gained = question, {}
        self._pass = self._done(self._curation.lesson(question))
        self._hint = told(self._pass.task, self._pass.remaining).split("\n", 1)[1].rsplit("\n\n", 1)[0].strip()

    def _reward(self) -> float:
        gain = self._done(self._curation.gain(self._pass, int(self.np_random.integers(2**31))))
        self._gained = {"gain": msgspec.to_builtins(gain)}
        return gain.reward(self._price)

    def _info(self) -> dict[str, Any]:
        return {**super()._info(), **self._gained}


def call_in(action: str | Mapping[str, Any], role: Role = "reader") -> Action:
    """Return the tool call in an object or in its JSON."""
    try:
        call = decode(action, dict[str, Any]) if isinstance(action, str) else dict(action)
        return parse(str(call.pop("tool", "")), call, role)
    except msgspec.DecodeError:
        return Invalid("", 'send one JSON object such as {"tool": "search", "query": "..."}.')


def reader_env(place: str, set: str = "train", **changes: Any) -> ReaderEnv:
    """Return the reader's environment over a store and a set of questions."""
    with open(place, **changes) as opened:
        return ReaderEnv(opened.store, opened.engine, opened.questions(set), opened.settings)


def curator_env(place: str, set: str = "train", k: int = 8, price: float = 0.01, **changes: Any) -> CuratorEnv:
    """Return the curator's environment over a store and a set of questions; the world's default reader is the judge."""
    with open(place, **changes) as opened:
        store, settings, world = opened.store, opened.settings, opened.world
        if world is None:
            raise BadInput(f"{place} has no world to draw fresh questions from; name a run or a world.")
        vectors, beside = embedder_named(settings.embedder), beside_on_page(world.documents)
        engine = live_engine_for(store, vectors, search=settings.search, beside=beside)
        assert isinstance(engine, LiveEngine)  # explicitly requested
        curation = Curation(world, store, engine, make_agent(agent_for(world), "reader"), settings, k)
        return CuratorEnv(curation, opened.questions(set), price)


class ReaderVectorEnv(SyncVectorEnv):
    """Concurrent episodes on one store; their queries are embedded in one batch per step."""

    def __init__(self, num_envs: int, place: str, set: str = "train", **changes: Any) -> None:
        with open(place, **changes) as opened:
            made = opened.store, opened.engine, opened.questions(set), opened.settings
        self._embedder = getattr(opened.engine, "embedder", None)
        super().__init__([lambda: ReaderEnv(*made)] * num_envs)

    def step(self, actions: Any) -> Any:
        if self._embedder is not None:
            self._embedder.embed([text for action in actions for text in texts_in(call_in(action))], behind=True)
        return super().step(actions)


class _AnyText(spaces.Text):
    """Text in any script: documents are not bound to an alphabet."""

    def contains(self, x: object) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length


if ID not in gymnasium.registry:
    gymnasium.register(
        ID,
        entry_point="kbgym.integrations.gymnasium:reader_env",
        vector_entry_point="kbgym.integrations.gymnasium:ReaderVectorEnv",
    )
    gymnasium.register(CURATOR_ID, entry_point="kbgym.integrations.gymnasium:curator_env")
