"""A scripted player for examples/harbour, behind the protocol of a chat server: it shows the mechanics and no skill.

It is no language model. It knows the example's questions, answers and supporting words (questions.csv), so what it
scores says nothing about any model. What it does with them is honest: as reader it says an answer only when every
supporting sentence has come back from the store, and `unknown` when its patience ends; as curator it looks at the
question and the gold alone, and builds an index for each name in them by searching. So a better score after training
means that the sentences were found, and it comes from the indexes.

As a writer it drafts what is written down here.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prompt_reader import calling, view_of

from kbgym.gym.actions import Action, Add, Answer, Done, LinkMany, Read, Search
from kbgym.gym.observations import documents
from kbgym.gym.policy import Backward, Steps, View

PATIENCE = 4  # actions of a reader before it gives up
PAGES = 5
NAME = re.compile(r"\b[A-Z][a-z]+(?: (?:& )?[A-Z][a-z]+)*")
INDEX = "Everything about {}."

Pass = Steps[None]


class Player:
    """Plays the role that a request asks for, from the request and the questions file alone."""

    def __init__(self, questions: Path) -> None:
        with questions.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self._known = {row["question"]: row for row in rows}

    def __call__(self, body: dict[str, Any]) -> Action | dict[str, Any]:
        name = body["tools"][0]["function"]["name"]
        if name == "suggest":
            return calling(body, [("suggest", json.dumps({"drafts": drafts(body)}))])
        return led(self.play(view := view_of(body)), view)

    def play(self, view: View) -> Pass:
        if isinstance(view.task, Backward):
            return curate(view.task.question, view.task.golds)
        row = self._known[view.task.question]
        supports = [part for part in row["support"].split("|") if part]
        return read(view.task.question, supports, row["answer"].split("|")[0])


def led(steps: Pass, view: View) -> Action:
    """Return the next action of a pass, given its history."""
    action = next(steps)
    for turn in view.history:
        action = steps.send(turn.observation)
    return action


def read(question: str, supports: list[str], answer: str) -> Pass:
    """Search what the question names, then the question; read indexes; follow names in what was found; give up."""
    seen: dict[str, str] = {}
    done: list[Action] = []
    about = names(question)
    queries = [Search(what, page) for page in range(1, PATIENCE + 1) for what in [*about, question]]
    while True:
        told = [text for text in seen.values() if any(says(text, words) for words in supports)]
        if enough(question, supports, answer, told):
            yield Answer(answer)
        if len(done) == PATIENCE:
            yield Answer("unknown")
        if not question.startswith("How many"):
            about = [*about, *(name for text in told for name in names(text) if name not in about)]
        indexes = [Read(id) for id, text in seen.items() if text in map(INDEX.format, about)]
        wanted = [*indexes, *queries[:1], *(Search(name, 1) for name in about), *queries]
        action = next(one for one in wanted if one not in done)
        done.append(action)
        seen |= dict(documents((yield action)))


def enough(question: str, supports: list[str], answer: str, told: list[str]) -> bool:
    """Return True if all support was seen: everything that is counted, or a sentence for each support."""
    if question.startswith("How many"):
        return len(told) == int(answer)
    return bool(supports) and all(any(says(text, words) for text in told) for words in supports)


def curate(question: str, golds: Iterable[str]) -> Pass:
    """An index for every name in the question and the gold that has none."""
    for name in dict.fromkeys([*names(question), *(name for gold in golds for name in names(f"- {gold}"))]):
        found = yield Search(INDEX.format(name), 1)
        if INDEX.format(name) in dict(documents(found)).values():
            continue
        members: dict[str, None] = {}
        for page in range(1, PAGES + 1):
            lines = documents((yield Search(name, page)))
            new = [id for id, text in lines if says(text, name) and not text.startswith("Everything about")]
            members |= dict.fromkeys(new)
            if not new:
                break
        if len(members) > 1:
            (index, _), *_ = documents((yield Add(INDEX.format(name))))
            yield LinkMany(index, tuple(members))
    yield Done()


def names(text: str) -> list[str]:
    """Names in a text, other than the word it begins with."""
    found = [match[0] for match in NAME.finditer(text) if match.start()]
    return [name for name in dict.fromkeys(found) if name.split()[0] not in ORDINARY]


def says(text: str, words: str) -> bool:
    return f" {plain(words)} " in f" {plain(text)} "


def plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


# Headings and column names, and words that only begin a sentence: no names of anything.
ORDINARY = frozenset(
    "Boats Boat Crews Repairs Berths Berth Yards Yard Notices Date Work Cost Type Built Owner Skipper Mate Deckhand The"
    " She He Her His It Its They There Keeper Captain".split()
)


# -- writing ----------------------------------------------------------------------------------------------------------

DRAFTS = (
    ("Who assigns the berths of the harbour?", "Bettina Crane", ("The harbour master",)),
    ("Who is the keeper of the ice house?", "Dag Halvorsen", ("Dag Halvorsen",)),
    ("Who founded Dunmore Yard?", "Elias Dunmore", ("founded in 1921",)),
    ("Who sails the Whimbrel alone?", "Ruth Calloway", ("Ruth Calloway sails",)),
    ("Who sails the boat that lies at berth 9?", "Karl Denning", ("Berth 9", "sailed by Karl Denning")),
    ("Which yard repainted the green boat's hull?", "Hallow Slip", ("Her hull is green", "hull repainted")),
    ("What was the Merganser's new planking priced at?", "2,400 crowns", ("waiting for new planks", "priced at")),
    ("Who is the captain of the pilot boat?", "Sofia Reyes", ("Sofia Reyes",)),
    ("Who is the Kestrel's deckhand?", "Sam Okoro", ("Deckhand: Sam Okoro",)),
    ("When was Dunmore Yard founded?", "1912", ("founded in 1921",)),  # wrong on purpose: the check must drop it
)


def drafts(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Those whose supporting sentences are all shown."""
    shown = dict(documents(body["messages"][1]["content"]))
    found = []
    for question, answer, words in DRAFTS:
        ids = [next((id for id, text in shown.items() if says(text, part)), None) for part in words]
        if None not in ids:
            found.append({"question": question, "answer": answer, "supports": ids})
    return found
