"""Write samples for teach.py: what a model was shown before each action of a teacher, and the reply it should give.

python samples.py --out samples/v3.jsonl --teacher reference-v3 worlds-out/v3-s40 worlds-out/v3-s41
python samples.py --out samples/real.jsonl --teacher supports worlds-out/hotpot-dev worlds-out/phantom-s3

A teacher is a rule agent that knows the grammar of a world, or `supports`: it knows which documents support the answer,
searches for the question, then for each support that was not shown by the names it begins with, and answers when all
are shown. Only questions of the split `train` are asked, and none of a set given by --without. Requests are kbgym's
own, with `effort=thought`: the note `known` has the supports shown so far, `missing` what is searched for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import msgspec

from kbgym.agents.llm.policy import request_for
from kbgym.agents.llm.prompting import skill_of
from kbgym.agents.llm.protocols import chat_messages
from kbgym.agents.llm.values import THOUGHT, ModelSettings
from kbgym.agents.registry import make_agent
from kbgym.api.workspace import Workspace
from kbgym.gym.actions import Action, Answer, Search
from kbgym.gym.environment import Environment
from kbgym.gym.episode import play
from kbgym.gym.policy import Forward, Policy, View
from kbgym.worlds.world import Question

SKILL = skill_of("reader").with_notes(THOUGHT, "reader")
SETTINGS = ModelSettings("taught", 0.0, THOUGHT, 2_048)


class Supports:
    """A teacher that knows the supports of a question and nothing else."""

    def __init__(self, question: Question, texts: dict[str, str]) -> None:
        self.question, self.texts = question, texts

    async def act(self, view: View) -> Action:
        shown = {document.id for turn in view.history for document in turn.observation.documents}
        left = [id for id in self.question.support if id not in shown]
        if not left or view.remaining == 1:
            return Answer(self.question.golds[0] if not left else "unknown")
        if not view.history:
            return Search(self.question.text)
        before = [turn.action.query for turn in view.history if isinstance(turn.action, Search)]
        query = " ".join(self.texts[left[0]].split()[:6]).rstrip(".,:;")
        return Search(query, 1 + before.count(query))


class Noted:
    """Plays a teacher and keeps a sample of each request and the reply to it."""

    def __init__(self, teacher: Policy, question: Question, texts: dict[str, str]) -> None:
        self.teacher, self.question, self.texts = teacher, question, texts
        self.samples: list[dict[str, object]] = []

    async def act(self, view: View) -> Action:
        action = await self.teacher.act(view)
        shown = {document.id for turn in view.history for document in turn.observation.documents}
        known = " ".join(self.texts[id] for id in self.question.support if id in shown)[-300:]
        missing = "nothing" if isinstance(action, Answer) else getattr(action, "query", "what it links to")[:120]
        fields = msgspec.to_builtins(action)
        call = {"tool": fields.pop("tool"), "arguments": {name: value for name, value in fields.items() if value != ""}}
        reply = json.dumps({"known": known, "missing": missing, "call": call}, ensure_ascii=False)
        messages = chat_messages(request_for(view, SETTINGS, SKILL), "schema")
        self.samples.append({"messages": messages, "reply": reply})
        return action


async def samples_of(place: Path, teacher: str, most: int, without: set[str]) -> list[dict[str, object]]:
    """Return the samples of all passes of a world that ended with the right answer."""
    with Workspace(place) as opened:
        how, texts = opened.settings, {record.id: record.text for record in opened.store}
        environment = Environment(opened.store.as_frozen(), opened.engine, None, how.ranking, how.observations)
        found = []
        for question in [one for one in opened.questions("train") if one.text not in without][:most]:
            policy = Supports(question, texts) if teacher == "supports" else make_agent(teacher, "reader")()
            noted = Noted(policy, question, texts)
            passed = await play(noted, environment, "reader", Forward(question.text), how.forward_budget, how.memory)
            if passed.answer in question.golds:
                found += noted.samples
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--teacher", default="supports", help="supports, reference or reference-v3")
    parser.add_argument("--most", type=int, default=1_000, help="questions of each world")
    parser.add_argument("--without", type=Path, help="a questions file of an exam; its questions are left out")
    asked = parser.parse_args()
    lines = asked.without.read_text(encoding="utf-8").splitlines() if asked.without else []
    without = {json.loads(line)["text"] for line in lines}
    with asked.out.open("w", encoding="utf-8") as file:
        for place in asked.worlds:
            samples = asyncio.run(samples_of(place, asked.teacher, asked.most, without))
            file.writelines(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples)
            print(f"{place}: {len(samples):,} samples", flush=True)


if __name__ == "__main__":
    main()
