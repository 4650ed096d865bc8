"""Scripts for the fault server that play a writer: drafts of questions, and summaries."""

from __future__ import annotations

import json
import re
from typing import Any

from prompt_reader import calling

_DATA = re.compile(r"<observation>\n(.*?)\n</observation>", re.DOTALL)
_LISTED = re.compile(r"^\[([^\]]+)\] (.*)$", re.MULTILINE)


def sentences(body: dict[str, Any]) -> dict[str, str]:
    """Return the sentences in a drafting request, by id."""
    return dict(_LISTED.findall(_DATA.findall(body["messages"][1]["content"])[0]))


def drafting(body: dict[str, Any]) -> dict[str, Any]:
    """Asks for the last word of the first sentence; its second draft has an answer that stands nowhere."""
    (id, text), *_ = sentences(body).items()
    first, last = text.split()[:4], re.sub(r"\W", "", text.split()[-1])
    drafts = [
        {"question": f"How does the sentence end that begins {' '.join(first)}?", "answer": last, "supports": [id]},
        {"question": f"What of {id}?", "answer": "nothing of the kind", "supports": [id]},
    ]
    return calling(body, [("suggest", json.dumps({"drafts": drafts}))])


def summarising(body: dict[str, Any]) -> dict[str, Any]:
    """Says how the first sentence begins; of a group of an even number of sentences it says nothing of use."""
    shown = _DATA.findall(body["messages"][1]["content"])[0].splitlines()
    text = f"All about {' '.join(shown[0].split()[:2])} and others." if len(shown) % 2 else ""
    return calling(body, [("summarise", json.dumps({"summary": text}))])
