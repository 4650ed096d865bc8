"""Scripts for the fault server that play a writer: one that names boats, one that drafts questions."""

from __future__ import annotations

import json
import re
from typing import Any

from prompt_reader import calling

_DATA = re.compile(r"<observation>\n(.*?)\n</observation>", re.DOTALL)
_LISTED = re.compile(r"^\[([^\]]+)\] (.*)$", re.MULTILINE)


def parts(body: dict[str, Any]) -> dict[str, str]:
    """What a rewriter is shown, by its caption."""
    text = body["messages"][1]["content"]
    return dict(re.findall(r"^([^\n<]+):\n<observation>\n(.*?)\n</observation>", text, re.DOTALL | re.MULTILINE))


def rewriting(body: dict[str, Any]) -> dict[str, Any]:
    """Puts the last heading where the sentence begins with a pronoun."""
    shown = parts(body)
    name = shown.get("The headings above it", "It").rpartition(" > ")[2]
    sentence = shown["The sentence to rewrite"]
    told = re.sub(r"^(She|He|It)\b", f"The {name}", re.sub(r"^(Her|His|Its)\b", f"The {name}'s", sentence))
    return calling(body, [("rewrite", json.dumps({"sentence": told}))])


def sentences(body: dict[str, Any]) -> dict[str, str]:
    """What a drafter is shown, by id."""
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
