"""A Gymnasium environment over one forward pass: the same tools, budget and grading, for people who train policies.

Observations and actions are text: an action is one JSON tool call, `{"tool": "search", "query": "..."}`; an
observation is the question, the last result and the actions left. The reward is the answer's F1 when the episode ends,
0 before. Needs the extra `gymnasium`, with which it is registered once this module is imported:

    gymnasium.make("kbgym.gym:kbgym/Reader-v0", place="runs/r0", set="train")
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import msgspec

from kbgym.actions import Answer, Invalid
from kbgym.artefact import open
from kbgym.canonical import decode
from kbgym.environment import Environment, SearchEngine
from kbgym.errors import BadInput, Missing
from kbgym.grading import grade
from kbgym.protocol.run import Settings
from kbgym.store import Store
from kbgym.sync import run_sync
from kbgym.tools import parse
from kbgym.worlds.world import Question

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise Missing("the Gymnasium environment needs the extra: pip install 'kbgym[gymnasium]'.") from error

ID = "kbgym/Reader-v0"
_CHARSET = "".join(sorted(string.printable))
_MOST = 100_000


class ReaderEnv(gymnasium.Env[str, str]):
    """One episode is one question on a frozen store, under the settings' budget and ranking."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012 - Gymnasium's own convention

    def __init__(
        self, store: Store, engine: SearchEngine, questions: Sequence[Question], settings: Settings | None = None
    ) -> None:
        settings = settings or Settings()
        if not questions:
            raise BadInput("an environment needs at least one question.")
        self.observation_space = _AnyText(max_length=_MOST)
        self.action_space = spaces.Text(max_length=4_096, charset=_CHARSET)
        self.render_mode = "ansi"
        self._environment = Environment(store.as_frozen(), engine, ranking=settings.ranking)
        self._questions = tuple(questions)
        self._budget = settings.forward_budget
        self._question = self._questions[0]
        self._spent = 0
        self._shown = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Draw a question, or take the one named in `options={"question": id}`."""
        super().reset(seed=seed)
        chosen = (options or {}).get("question")
        if chosen is not None:
            named = [question for question in self._questions if question.id == chosen]
            if not named:
                raise BadInput(f"there is no question {chosen!r} here.")
            self._question = named[0]
        else:
            self._question = self._questions[int(self.np_random.integers(len(self._questions)))]
        self._spent = 0
        return self._see("Use search, read and answer."), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one tool call; a malformed one costs an action and says what is wrong."""
        call = self._call(action)
        step = run_sync(self._environment.step(call, "reader"))
        self._spent += 1
        answered = isinstance(step.action, Answer)
        reward = 0.0
        if isinstance(step.action, Answer):
            reward = grade(step.action.text, self._question.golds, self._question.unanswerable).f1
        return self._see(step.observation), reward, answered, self._spent >= self._budget and not answered, self._info()

    def render(self) -> str:
        return self._shown

    def _call(self, action: str) -> Any:
        try:
            call = decode(action, dict[str, Any])
            return parse(str(call.pop("tool", "")), call, "reader")
        except msgspec.DecodeError:
            return Invalid("", 'send one JSON object such as {"tool": "search", "query": "..."}.')

    def _see(self, result: str) -> str:
        left = self._budget - self._spent
        self._shown = f"Question: {self._question.text}\n{result}\nActions left: {left}"[:_MOST]
        return self._shown

    def _info(self) -> dict[str, Any]:
        return {"question": self._question.id, "actions": self._spent}


def reader_env(place: str, set: str = "train", **changes: Any) -> ReaderEnv:
    """The environment over a store and a set of questions, as `kbgym.open` opens them."""
    with open(place, **changes) as opened:
        return ReaderEnv(opened.store, opened.engine, opened.questions(set), opened.settings)


class _AnyText(spaces.Text):
    """Text in any script: documents are not bound to an alphabet."""

    def contains(self, x: object) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="kbgym.gym:reader_env")
