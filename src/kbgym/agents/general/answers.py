"""The answer of a reader without grammar: the span of the best sentences that fits the kind of question.

It extracts and never composes. What it scores is reported beside the evidence and should not be taken for reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbgym.agents.general.text import content_words, look_at, split_title

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(
    rf"\b(?:\d\d? (?:{_MONTH}) \d{{4}}|(?:{_MONTH}) \d\d?, \d{{4}}|\d{{4}}-\d\d-\d\d|(?:{_MONTH}) \d{{4}})\b"
)
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d{2}\b")
_NUMBER = re.compile(r"\b\d[\d,.]*\b")
_YES_NO = ("is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will")
_LOOKED_AT = 5


def best_answer(question: str, ranked: Sequence[str], listed: int = 0) -> str:
    """A span out of the texts, the likeliest first; `unknown` where none fits.

    `listed` is how many documents of an index speak of what is asked: what "how many" is answered with, if several do
    and no sentence gives the number.
    """
    lowered = question.lower()
    asked = frozenset(content_words(question))
    first = lowered.split()[0] if lowered.split() else ""
    if counted := re.match(r"(?:in )?how many (\w+)", lowered):
        stated = (_number_of(counted[1], split_title(text)[1]) for text in ranked[:_LOOKED_AT])
        if number := next(filter(None, stated), str(listed) if listed > 1 else ""):
            return number
    for text in ranked[:_LOOKED_AT]:
        title, body = split_title(text)
        if first in _YES_NO:
            return "yes"
        if re.search(r"\bwhen\b|\bwhat date\b|\bwhich date\b", lowered) and (found := _DATE.search(body)):
            return found[0]
        if re.search(r"\bwhen\b|\byear\b", lowered) and (found := _YEAR.search(body)):
            return found[0]
        if re.search(r"\bhow (?:many|much|old|far|long)\b", lowered) and (found := _NUMBER.search(body)):
            return found[0].rstrip(".,")
        fresh = [name for name in look_at(text).names if not set(content_words(name)) <= asked]
        if fresh:
            return fresh[0]
        if ": " in body:  # "Label: value"
            return body.rpartition(": ")[2].rstrip(".")
        if title and not set(content_words(title)) <= asked:
            return title
    return "unknown"


def _number_of(counted: str, body: str) -> str:
    """The number a sentence or a field gives of something ("140 turns", "cost_crowns: 18,000"), empty where none."""
    found = _NUMBER.search(body)
    words = [word for word in re.split(r"[\W\d_]+", body.lower()) if len(word) > 2]
    said = any(word.startswith(counted) or counted.startswith(word) for word in words)
    return found[0].rstrip(".,") if found and said else ""
