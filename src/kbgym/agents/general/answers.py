"""Answer extraction without a grammar: a cell of a record, or a span of the best sentences, or "unknown".

A record is a sentence or a table row of `label: value` cells after a path ("releases: cycle 2: date: 2020-01-01; end:
2021-01-01"). It is identified by its path and by its values that are no dates. Its cell is the answer if the question
names the record and one cell alone has the kind of value and the label that it asks for.

Answers are extracted, never composed, and are never a heading or words of the question. Their score is reported beside
the evidence; it does not measure reading ability.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from kbgym.agents.general.fields import Field, fields_of, in_words, page_of, sentences
from kbgym.agents.general.text import content_words, names, names_after_title, split_title, stem

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(
    rf"\b(?:\d\d? (?:{_MONTH}) \d{{4}}|(?:{_MONTH}) \d\d?, \d{{4}}|\d{{4}}-\d\d-\d\d|(?:{_MONTH}) \d{{4}})\b"
)
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d{2}\b")
_NUMBER = re.compile(r"\b\d[\d,.]*\b")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_WHOLE = re.compile(r"(?<![\w.-])v?(\d+(?:\.\d+)*)(?![\w-])")
_YES_NO = ("is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will")
_ENDS = re.compile(
    r"\bend(?:s|ed|ing)?\b|\buntil\b|\bexpir|\bretire|\bdeadline\b|\bcut off\b|\bout of\b|\bno (?:more|longer)\b"
    r"|\bstop|\bmaintained\b|\blast (?:day|date|year)\b|\bfinal (?:day|date|year)\b"
)
_BEGINS = re.compile(
    r"\breleas|\bstart|\bbeg[aiu]n|\blaunch|\bcreated\b|\bintroduced\b|\bfounded\b|\badded\b|\bcome out\b"
)
_KINDS = (  # kinds of question, with the spans that answer them
    (re.compile(r"\bhow (?:many|much|old)\b"), (_NUMBER,)),
    (re.compile(r"\bwhen\b|\b(?:date|day)\b|\bdeadline\b|\buntil what\b"), (_DATE, _YEAR)),
    (re.compile(r"\byear\b"), (_YEAR,)),
    (re.compile(r"\bhow (?:far|long)\b"), (_NUMBER, _DATE)),
    (re.compile(r"^(?!.*\b(?:who|which|what|where|how)\b).*\bend (?:of|date)\b"), (_DATE, _YEAR)),
)
_KIND_WORDS = frozenset("date day month year time".split())
_COUNTS = re.compile(r"\bhow many\b|\bnumber of\b")
_LABEL_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NO_VALUE = re.compile(r"\w+://\S*|true|false|null|no|yes|-", re.IGNORECASE)
UNKNOWN = "unknown"
_DOCUMENTS = 5
_LEAST = 0.4  # share of the question's words that a sentence and its page must hold


def best_answer(question: str, ranked: Sequence[str], listed: int = 0) -> str:
    """Return the likeliest answer span of the texts, or `unknown` if none states an answer.

    Args:
        listed: the number of documents of an index that match the question; the answer to "how many" if several do
            and no sentence gives a number.
    """
    lowered = question.lower()
    asked = frozenset(content_words(question))
    told = ranked[:_DOCUMENTS]
    if counted := re.search(r"\bhow many (\w+ ?\w*)", lowered):
        seen = max(listed, _counted(asked, ranked))
        units = "|".join(stem(word) for word in counted[1].split())
        if number := _number_of(units, asked, told) or (str(seen) if seen > 1 else ""):
            return number
    if value := record_value(question, told):
        return value
    kinds = _kinds_of(lowered)
    for page, sentence in _speaking(asked, told, _LEAST):
        if lowered.split()[0] in _YES_NO:
            return "yes"
        if any(_cells(sentence)):
            continue  # a record that does not answer the question
        if kinds:
            if found := next((match[0] for pattern in kinds if (match := pattern.search(sentence))), ""):
                return found.rstrip(".,")
            continue
        own = asked | {*content_words(page)}
        if fresh := [name for name in names_after_title(f"{page}: {sentence}") if not {*content_words(name)} <= own]:
            return next((name for name in fresh if " " in name), fresh[0]) if "who" in lowered.split() else fresh[0]
    return UNKNOWN


# -- records ----------------------------------------------------------------------------------------------------------


class RecordCell(NamedTuple):
    path: str
    label: str
    value: str


def record_value(question: str, texts: Sequence[str], learnt: str = "") -> str:
    """Return the cell that a question asks for, of the record that it names; empty if none or several fit.

    Args:
        learnt: the label of the cell that answered a similar question, which decides where labels do not.
    """
    asked = frozenset(content_words(question))
    found: dict[str, int] = {}
    for text in texts[:_DOCUMENTS]:
        title = frozenset(content_words(page_of(text).replace(".", " ")))
        for sentence in sentences(text):
            cells = list(_cells(sentence))
            fit = _names_record(question, asked, title, cells)
            if fit and (value := _asked_cell(question.lower(), asked, title, cells, learnt)):
                found[value] = max(fit, found.get(value, 0))
    best = [value for value in found if found[value] == max(found.values())]
    return best[0] if len(best) == 1 else ""


def _cells(sentence: str) -> Iterator[RecordCell]:
    """Yield the cells of a record; later cells have the path of the first."""
    above = ""
    for number, piece in enumerate(re.split(r"; | \| ", sentence.rstrip("."))):
        path, _, value = piece.rpartition(": ")
        above, _, label = path.rpartition(": ") if not number else (above, "", path)
        if label and value:
            yield RecordCell(above, label, value)


def _names_record(question: str, asked: Set[str], title: Set[str], cells: Sequence[RecordCell]) -> int:
    """Return how many words of a question identify a record, counting its page; 0 if it is of another one."""
    if not cells:
        return 0
    values = (one.value for one in cells if not (_DATE.fullmatch(one.value) or "://" in one.value))
    own = " ".join([cells[0].path, *values])
    words = frozenset(content_words(own)) | {*_WHOLE.findall(own)}
    numbers = {*_WHOLE.findall(_DATE.sub("", _YEAR.sub("", question)))}
    named = [name for name in names(question) if any(name == one.value for one in cells)]
    if not numbers <= words | title or not (title & asked or named):
        return 0
    identified = len((asked | numbers) & (words - title)) + len(named)
    return identified + len(title & asked) if identified or title <= asked else 0


def _asked_cell(lowered: str, asked: Set[str], title: Set[str], cells: Sequence[RecordCell], learnt: str) -> str:
    """Return the value of the one cell of a record that has the kind of value and the label asked for."""
    kinds, ends = _kinds_of(lowered), _ENDS.search(lowered) is not None
    kinds = kinds or ((_DATE,) if ends else ())
    begins = not ends and _BEGINS.search(lowered) is not None
    wanted = (asked - title - _KIND_WORDS) | ({"name"} if "call" in lowered else set())
    fitting: list[tuple[int, int, RecordCell]] = []
    for cell in cells:
        pieces = [stem(piece.lower()) for piece in _LABEL_PIECE.findall(cell.label)]
        kind = any(one.fullmatch(cell.value) for one in kinds) if kinds else not _DATE.fullmatch(cell.value)
        told = _NO_VALUE.fullmatch(cell.value) or {*content_words(cell.value)} <= asked
        opening = any(_BEGINS.match(piece) for piece in pieces)
        other = _DATE.fullmatch(cell.value) and ((opening and ends) or (begins and not opening))
        if kind and not told and not other:
            shared = sum(any(_alike(piece, word) for word in wanted) for piece in pieces)
            fitting.append((shared, shared - len(pieces), cell))
    if not fitting:
        return ""
    most = max(fitting)[:2]
    labelled = {cell.value for *score, cell in fitting if (*score,) == most}
    if most[0] and len(labelled) == 1:
        return labelled.pop().rstrip(".")
    values = {cell.value for *_, cell in fitting}
    if len(values) == 1 and (ends or begins):
        return values.pop()
    return next((cell.value for *_, cell in fitting if learnt and cell.label == learnt and not begins), "")


def _alike(one: str, other: str) -> bool:
    """Return True if two words have one stem, or one ends in the other: "codename" and "name"."""
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) > 3 and (long.startswith(short) or long.endswith(short)))


def _kinds_of(lowered: str) -> tuple[re.Pattern[str], ...]:
    return next((patterns for kind, patterns in _KINDS if kind.search(lowered)), ())


# -- what was learnt from another question ----------------------------------------------------------------------------


def asks_for(question: str, value: str, heading: str) -> bool:
    """Return True if a value learnt from another question is of the kind asked for, and of no other version or unit."""
    asked, known = ({*_VERSION.findall(_DATE.sub("", _YEAR.sub("", text)))} for text in (question, heading))
    if asked and known and not asked & known:
        return False
    unit = re.search(r"\bhow many (\w+)", question.lower())
    if unit and re.search(r"[^\W\d]", value) and stem(unit[1]) not in content_words(value):
        return False
    kinds, dated = _kinds_of(question.lower()), _DATE.fullmatch(value) is not None
    return any(kind.search(value) for kind in kinds) and (_DATE in kinds or not dated) if kinds else not dated


def listed_answer(question: str, value: str, texts: Sequence[str]) -> str:
    """Return the pages that state a value, or their number, if the question names that value; otherwise empty.

    Numbers of the question that are not the value's, as in "since 2025", narrow the pages down.
    """
    asked, named = frozenset(content_words(question)), frozenset(content_words(value))
    if not texts or not named <= asked:
        return ""
    others = [word for word in asked - named if word.isdigit() and re.search(rf"\b{word}\b", "\n".join(texts))]
    pages = dict.fromkeys(page_of(text) for text in texts if all(re.search(rf"\b{word}\b", text) for word in others))
    return str(len(pages)) if _COUNTS.search(question.lower()) else ", ".join(pages)


# -- sentences --------------------------------------------------------------------------------------------------------


def _speaking(asked: Set[str], texts: Sequence[str], least: float) -> Iterator[tuple[str, str]]:
    """Yield sentences with at least this share of the question's words, with their page, best match first."""
    found = []
    for text in texts:
        page = page_of(text) if split_title(text)[0] else ""
        for sentence in sentences(text):
            share = len(asked & {*content_words(page), *content_words(sentence)}) / max(1, len(asked))
            if share >= least:
                found.append((share, page, sentence))
    yield from ((page, sentence) for _, page, sentence in sorted(found, key=lambda one: -one[0]))


def _counted(asked: Set[str], texts: Sequence[str]) -> int:
    """Return the number of pages seen that state a field and value of the question."""
    pages: dict[Field, set[str]] = {}
    for text in texts:
        for field in fields_of(text):
            if in_words(Field(field.label)) and in_words(field) <= asked:
                pages.setdefault(field, set()).add(page_of(text))
    return max(map(len, pages.values()), default=0)


def _number_of(unit: str, asked: Set[str], texts: Sequence[str]) -> str:
    """Return the number that the best sentence states of a unit ("140 turns", "cost_crowns: 18,000"), or ""."""
    for _, sentence in _speaking(asked, texts, _LEAST / 2):
        plain = _YEAR.sub("", _DATE.sub("", sentence))
        if found := re.search(rf"(?i)\b(\d[\d,.]*)[\s-](?:[^\W\d]+ )?(?:{unit})|(?:{unit})\w*: (\d[\d,.]*)", plain):
            return (found[1] or found[2]).rstrip(".,")
    return ""
