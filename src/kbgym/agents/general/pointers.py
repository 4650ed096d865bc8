"""The place of an answer in a document: its sentence or field with a blank where the answer stands.

"Ubuntu: releases: releaseCycle 22.04 … eoes: ___" points at one field of a passage of many. An alias states the place
and not the answer, so what it points at is read from the document, also after the document has changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from kbgym.agents.general.fields import page_of, sentences

BLANK, GAP = "___", "…"
_BEFORE, _AFTER = 9, 5  # words of a sentence around its blank


def pointer(text: str, answers: Iterable[str], worth: Callable[[str], float]) -> str:
    """Return the place of an answer in a document, in the sentence of most worth; empty if no sentence states it."""
    places = {blanked: None for one in sentences(text) for answer in answers if (blanked := _blanked(one, answer))}
    return f"{page_of(text)}: {_shortened(max(places, key=worth))}" if places else ""


def follow(heading: str, text: str) -> str:
    """Return what stands in a document at the place that a heading points at; empty if it points elsewhere."""
    start = f"{page_of(text)}: "
    places = (one for one in re.split(r"(?<=[.?!])\s+", heading) if one.startswith(start) and BLANK in one)
    if not (place := next(places, "")):
        return ""
    before, _, after = place.removeprefix(start).rstrip(".").partition(BLANK)
    path = [re.escape(part.strip()) for part in before.split(GAP) if part.strip()]
    end = re.escape(after.replace(GAP, "").strip()) or r"(?:;|[.!?]?$)"
    pattern = re.compile(r"(?!\w|[.-]\w).*?(?<!\w)".join(path) + rf"\s*(\S.*?)\s*{end}")
    found = (pattern.search(one) for one in sentences(text))
    return next((value[1].strip(" .,;") for value in found if value and BLANK not in value[1]), "")


def label_of(heading: str) -> str:
    """Return the label of the cell that a heading points at, or an empty text."""
    found = re.search(rf"(\w+): {BLANK}", heading)
    return found[1] if found else ""


def _blanked(sentence: str, answer: str) -> str:
    pattern = rf"(?<![\w.-]){re.escape(answer.strip())}(?!\w|[.-]\w)"
    return re.sub(pattern, BLANK, sentence, count=1, flags=re.IGNORECASE) if re.search(pattern, sentence, re.I) else ""


def _shortened(blanked: str) -> str:
    """Return a blanked sentence without other fields, and without words far from the blank."""
    first, *others = blanked.split("; ")
    piece = next((one for one in others if BLANK in one), "")
    path = first.rpartition(": ")[0].rpartition(": ")[0]
    if piece and path:
        return f"{path} {GAP} {piece.rstrip('.')}"
    before, _, after = (first if BLANK in first else piece or blanked).partition(BLANK)
    words, rest = before.split(), after.rstrip(".").split()
    start = f"{GAP} " * (len(words) > _BEFORE) + " ".join(words[-_BEFORE:])
    end = " ".join(rest[:_AFTER]) + f" {GAP}" * (len(rest) > _AFTER)
    joined = "" if not after[:1].isspace() else " "
    space = " " if before[-1:].isspace() else ""
    return f"{start}{space}{BLANK}{joined}{end}"
