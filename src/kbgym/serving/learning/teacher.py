"""The curator of a person's lesson: an alias where documents state the accepted answer, else a correction."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from kbgym.agents.general.text import content_words, names, split_title
from kbgym.gym.actions import Action, Add, Answer, Correct, Done, LinkMany, Search
from kbgym.gym.policy import Backward, PlannedPolicy, Steps, View
from kbgym.gym.tools import MOST_TARGETS, MOST_TEXT
from kbgym.store import Store
from kbgym.trace.corrections import Taught

_PAGES = 2  # number of results to check for each query
_AROUND = 300  # characters around an answer that must mention the subject
_SENTENCE_ENDS, _CLAUSE_ENDS = re.compile(r"[.!?]\s|\n"), re.compile(r"[.!?;]\s|\n")
_DIGIT = re.compile(r"(?<![\w.])\d(?!\w|\.\d)")
_SHARE = 0.5  # share of the question's words, by document frequency


class Teacher(PlannedPolicy):
    """The curator of a person's lesson: it plays the backward pass of a taught question.

    Args:
        forgotten: documents to withdraw, with their texts; without them the task's question is taught.
    """

    def __init__(self, lesson: Taught, store: Store, forgotten: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(self._plan, lambda view: Done())
        self._lesson, self._store, self._forgotten = lesson, store, forgotten

    def _plan(self, view: View) -> Steps[Action]:
        task, by = view.task, f"{self._lesson.by}, {self._lesson.on}"
        assert isinstance(task, Backward)
        note = f" {self._lesson.note}" if self._lesson.note else ""
        if self._forgotten:
            texts = " ".join(text for _, text in self._forgotten)
            text = f"No longer true (withdrawn by {by}):{note} {texts}"
            yield Correct(text[:MOST_TEXT].rstrip(), tuple(id for id, _ in self._forgotten))
            return Done()
        given = task.forward[-1].action if task.forward else None
        wrong = [given.text] if isinstance(given, Answer) and task.f1 < 1.0 else []
        seen: dict[str, str] = {}
        for answer in ("", *task.golds[:2], *wrong):
            for page in range(1, _PAGES + 1):
                found = yield Search(f"{task.question} {answer}".strip()[:MOST_TEXT], page)
                known = [shown for shown in found.documents if shown.id in self._store]
                # Not documents that an agent wrote.
                seen |= {shown.id: shown.text for shown in known if self._store[shown.id].flag != "authored"}
        corrections = self._store.corrections()
        valid = {id: text for id, text in seen.items() if not self._store.superseded_by(id)}
        if evidence := stating(task.question, task.golds, valid, corrections)[:MOST_TARGETS]:
            added = yield Add(alias_text(task.question, [seen[id] for id in evidence]))
            if added.documents:
                yield LinkMany(added.documents[0].id, tuple(evidence))
        else:
            text = f"{task.question} {', '.join(task.golds)} (correction by {by}){note}"
            # A passage holds several facts, so it may be superseded several times.
            yield Correct(text[:MOST_TEXT], tuple(stating(task.question, wrong, seen, corrections)))
        return Done()


def stating(
    question: str, answers: Sequence[str], texts: Mapping[str, str], corrections: Collection[str] = ()
) -> list[str]:
    """Return the documents that state an answer to the question.

    If a sentence, with its page's title, has the names and numbers of the question, then the clause of the answer must
    have another of its words, where any document has one. Otherwise the text around the answer must have the names and
    half of the question's words, weighted by document frequency. Corrections contain other questions' words, so they
    are excluded from document frequencies.
    """
    wanted = _words(question).difference(*map(_words, answers))
    holding = Counter(
        word for id, text in texts.items() if id not in corrections for word in wanted.intersection(_words(text))
    )
    # A word that no document contains distinguishes none of them.
    weight = {word: math.log1p((len(texts) + 1) / (held + 0.5)) for word, held in holding.items()}
    named = wanted & (_words(" ".join(names(question))) | {word for word in wanted if any(map(str.isdigit, word))})
    others = weight.keys() - named

    def states(around: str, sentence: str, clause: str) -> bool:
        if named and named <= _words(sentence):
            return not others or not others.isdisjoint(_words(clause))
        words = weight.keys() & _words(around)
        return bool(words) and named <= words and sum(weight[word] for word in words) >= _SHARE * sum(weight.values())

    return [id for id, text in texts.items() if any(states(*place) for place in _places(text, answers))]


def _words(text: str) -> set[str]:
    """Return the content words of a text, and its numbers of one digit."""
    return {*content_words(text), *_DIGIT.findall(text)}


def _places(text: str, answers: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the text around each statement of an answer, its sentence and its clause, the first two with the title."""
    title, _ = split_title(text)
    for answer in answers:
        words = re.findall(r"\w+", answer)
        pattern = r"\b" + r"\W{1,3}".join(map(re.escape, words)) + r"\b"
        for place in re.finditer(pattern, text, re.IGNORECASE) if words else ():
            around = text[max(0, place.start() - _AROUND) : place.end() + _AROUND]
            sentence, clause = (_between(text, place, ends) for ends in (_SENTENCE_ENDS, _CLAUSE_ENDS))
            yield f"{title} {around}", f"{title} {sentence}", clause


def _between(text: str, place: re.Match[str], ends: re.Pattern[str]) -> str:
    """Return the part of a text between two ends that contains a place."""
    begin = max((end.end() for end in ends.finditer(text, 0, place.start())), default=0)
    end = ends.search(text, place.end())
    return text[begin : end.start() if end else None]


def alias_text(question: str, evidence: Sequence[str]) -> str:
    """Return the text of an alias: the question's words and the names of its evidence."""
    names = dict.fromkeys(split_title(text)[0] or " ".join(text.split()[:6]) for text in evidence)
    return f"{question} {'; '.join(names)}"[:MOST_TEXT]
