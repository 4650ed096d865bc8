"""Wordings of facts and questions from `wordings.toml`, for writing and parsing them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

MONTHS = (
    "January February March April May June July August September October November December".split()
)  # not strftime, which depends on the locale
NAME = r"[A-Z][\w'-]*\.? [A-Z][\w'-]+"
_DATE = r"[A-Z][a-z]+ \d{1,2}, \d{4}"
_WORDS, _WORD = r"[A-Za-z][a-z ]*", r"[A-Z][a-z]+"
_VALUES = {"job": _WORDS, "hobby": _WORDS, "city": _WORD, "born": _DATE}
_PRONOUNS = {"S": "[Hh]e|[Ss]he", "O": "him|her", "P": "[Hh]is|[Hh]er"}
PRONOUNS = {"female": {"S": "she", "O": "her", "P": "her"}, "male": {"S": "he", "O": "him", "P": "his"}}
_SLOT = re.compile(r"\\\{([A-Z])\\\}")


class Wording(NamedTuple):
    """A wording: its text with slots, and the pattern that parses it."""

    text: str
    ended: bool
    pattern: re.Pattern[str]

    @property
    def takes_pronoun(self) -> bool:
        """Return True if a pronoun may replace the name; not before an apposition."""
        return "{N}" not in self.text and not re.search(r"\{[SO]\},", self.text)


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads((files("kbgym.chronicle") / "wordings.toml").read_text(encoding="utf-8"))


@cache
def wordings(group: str, name: str, half: str) -> tuple[Wording, ...]:
    """Return the wordings of a half, "open" or "held_out", for a group (documents, people or questions) and a name."""
    table = _tables()[group][name]
    patterns = _document_slots(name) if group == "documents" else _question_slots(name)
    return tuple(
        Wording(text, part.startswith("ended"), _pattern(text, patterns))
        for part in (half, f"ended_{half}")
        for text in table.get(part, ())
    )


def every(group: str, name: str) -> tuple[Wording, ...]:
    """Return the wordings of both halves."""
    return wordings(group, name, "open") + wordings(group, name, "held_out")


def _document_slots(relation: str) -> dict[str, str]:
    value = _VALUES.get(relation, NAME)
    people = {slot: f"{NAME}|{pronoun}" for slot, pronoun in _PRONOUNS.items()}
    return {**people, "P": f"(?:{NAME})'s|{_PRONOUNS['P']}", "N": NAME, "V": value, "R": "mother|father"}


def _question_slots(name: str) -> dict[str, str]:
    kinds = [kind for kind in name.split("-") if kind in _VALUES]
    values = dict(zip("VW", [_VALUES[kind] for kind in (kinds * 2 if name.startswith("compare") else kinds)]))  # noqa: B905
    return {"N": ".+", "D": _DATE, "X": "[A-Z][A-Za-z ]+", "Q": ".+", "R": "[a-z]+", "V": NAME, **values}


def _pattern(text: str, slots: Mapping[str, str]) -> re.Pattern[str]:
    article = rf"(?:[Aa]n? )(?P<V>{slots['V']})"
    return re.compile(
        _SLOT.sub(lambda slot: article if slot[1] == "A" else f"(?P<{slot[1]}>{slots[slot[1]]})", re.escape(text))
    )


def fill(wording: Wording, slots: Mapping[str, str]) -> str:
    """Fill the slots of a wording; {A} follows from {V}, and a sentence begins with a capital."""
    values = dict(slots)
    if "V" in values:
        values["A"] = f"{'an' if values['V'][:1] in 'aeiou' else 'a'} {values['V']}"
    text = wording.text.format_map(values)
    return text[:1].upper() + text[1:]


def person_slots(name: str, pronouns: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the slots of a person, by name or by pronoun."""
    return {"N": name, **(pronouns or {"S": name, "O": name, "P": f"{name}'s"})}


class ParsedStatement(NamedTuple):
    """The content of a sentence; the subject is "" if the sentence only has a pronoun."""

    relation: str
    subject: str
    value: str
    ended: bool


@cache
def statement(sentence: str) -> ParsedStatement | None:
    """Read a sentence of a document, or return None if it has no known wording."""
    for relation in _tables()["documents"]:
        for wording in every("documents", relation):
            if match := wording.pattern.fullmatch(sentence):
                found = match.groupdict()
                name = found.get("N") or found.get("S") or found.get("O") or found.get("P") or ""
                subject = name.removesuffix("'s") if " " in name else ""
                kind = found["R"] if relation == "parent" else relation
                return ParsedStatement(kind, subject, value_of(relation, found["V"]), wording.ended)
    return None


def value_of(kind: str, text: str) -> str:
    """Return a value as facts hold it: a date as an ISO date, a job or hobby without a sentence's capital."""
    if kind == "born":
        return iso(text)
    return text[:1].lower() + text[1:] if kind in ("job", "hobby") else text


def spoken(iso_date: str) -> str:
    """Write the ISO date 1920-09-16 as September 16, 1920."""
    day = date.fromisoformat(iso_date)
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def iso(text: str) -> str:
    """Read September 16, 1920 as an ISO date, or return "" if it is not a date."""
    month, day, year = text.replace(",", "").split()
    try:
        return date(int(year), MONTHS.index(month) + 1, int(day)).isoformat()
    except ValueError:
        return ""


_HEAD = re.compile(rf"(?P<source>[A-Z][A-Za-z ]+), (?P<date>{_DATE}): ")
_ENDS = re.compile(r"(?<=[a-z0-9)])\. (?=[A-Z])")


def heading(source: str, iso_date: str) -> str:
    """Return the source and date that a document begins with."""
    return f"{source}, {spoken(iso_date)}: "


def sentences(text: str) -> tuple[str, str, list[tuple[int, str]]] | None:
    """Return the source, the ISO date and the sentences of a document with their offsets, or None for other texts."""
    head = _HEAD.match(text)
    if head is None:
        return None
    ends = [found.start() + 1 for found in _ENDS.finditer(text, head.end())]
    starts = [head.end(), *(end + 1 for end in ends)]
    return head["source"], iso(head["date"]), [(s, text[s:e]) for s, e in zip(starts, [*ends, len(text)], strict=True)]
