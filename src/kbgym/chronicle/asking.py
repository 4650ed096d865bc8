"""Questions in words: write a question from a template and its slots, and parse it back."""

from __future__ import annotations

import re
from functools import cache
from random import Random

from kbgym.chronicle.questions import DEEPEST, QuestionTemplate, Slots, templates
from kbgym.chronicle.timeline import PARENTS
from kbgym.chronicle.wordings import NAME, Wording, every, fill, iso, spoken, value_of, wordings

_EXTREMES = ("oldest-city", "youngest-hobby", "oldest-job")
_RELATIONS = ("spouse", *PARENTS)


def ask(template: QuestionTemplate, slots: Slots, half: str, rng: Random) -> str:
    """Return a question in a wording of a half, "open" or "held_out"."""

    def choose(group: str, name: str) -> Wording:
        return rng.choice(wordings(group, name, half))

    values = _values(template, slots)
    if template.ask == "source":
        question = fill(choose("questions", f"value-{template.kind}"), values)
        return fill(choose("questions", "source"), {**values, "Q": question[:1].lower() + question[1:]})
    for relation in template.path:
        values["N"] = choose("people", "relation").text.format(R=relation, N=values["N"])
    if template.ask != "extreme":
        return fill(choose("questions", template.wording), values)
    phrase = fill(choose("people", f"{template.name.split('-')[0]}-{template.kind}"), values)
    name = f"value-{template.other}" if template.other else "who"
    return fill(choose("questions", name), {"N": phrase[:1].lower() + phrase[1:]})


def _values(template: QuestionTemplate, slots: Slots) -> dict[str, str]:
    values: dict[str, str] = {}
    for kind, slot in zip(template.slots, slots, strict=True):
        if kind in ("person", "date", "source"):
            values[{"person": "N", "date": "D", "source": "X"}[kind]] = spoken(slot) if kind == "date" else slot
        else:
            values["W" if "V" in values else "V"] = slot
    return values


@cache
def _all() -> dict[str, QuestionTemplate]:
    return templates(DEEPEST)


def read(text: str) -> tuple[QuestionTemplate, Slots] | None:
    """Return the template and the slots of a question, or None if it has no known wording."""
    for template in _all().values():
        if not template.path and template.ask not in ("source", "extreme"):
            for wording in every("questions", template.wording):
                if (match := wording.pattern.fullmatch(text)) and (found := _found(template, match)):
                    return found
    for wording in every("questions", "who"):
        if (match := wording.pattern.fullmatch(text)) and (named := _extreme(match["N"])):
            return _all()[named[0]], named[1]
    for wording in every("questions", "source"):
        if match := wording.pattern.fullmatch(text):
            inner = read(match["Q"][:1].upper() + match["Q"][1:])
            if inner is not None and inner[0].ask == "value" and not inner[0].path:
                return _all()[f"source-{inner[0].kind}"], (match["X"], *inner[1])
    return None


def _found(template: QuestionTemplate, match: re.Match[str]) -> tuple[QuestionTemplate, Slots] | None:
    groups = match.groupdict()
    if "N" in groups and not re.fullmatch(NAME, groups["N"]):
        return _of_phrase(template, groups["N"]) if template.ask == "value" else None
    kinds = [kind for kind in template.slots if kind not in ("person", "date", "source")]
    values = [value_of(kind, groups[slot]) for slot, kind in zip("VW", kinds, strict=False)]
    slots = [groups["N"]] if "N" in groups else []
    return template, (*slots, *([iso(groups["D"])] if "D" in groups else []), *values)


def _of_phrase(template: QuestionTemplate, phrase: str) -> tuple[QuestionTemplate, Slots] | None:
    """Return the template that asks for the same attribute of a relative or of an extreme."""
    if named := _extreme(phrase):
        further = _all().get(f"{named[0]}-{template.kind}")
        return (further, named[1]) if further else None
    path: list[str] = []
    while not re.fullmatch(NAME, phrase):
        found = next((m for w in every("people", "relation") if (m := w.pattern.fullmatch(phrase))), None)
        if found is None or found["R"] not in _RELATIONS:
            return None
        path.insert(0, found["R"])
        phrase = found["N"]
    longer = _all().get("-".join([*path, template.kind]))
    return (longer, (phrase,)) if longer else None


def _extreme(phrase: str) -> tuple[str, Slots] | None:
    """Return the name of the template and the value that a phrase such as "the oldest resident of V" means."""
    for name in _EXTREMES:
        for wording in every("people", name):
            if match := wording.pattern.fullmatch(phrase):
                return name, (value_of(name.partition("-")[2], match["V"]),)
    return None
