"""The evidence of an expected answer: which of the documents seen state it and speak of what the question names.

No supports and no grammar are used. A document that states the answer by chance speaks of something else: what a
document speaks of is judged by the question's words in it and on its page, the rarer a word the more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from kbgym.agents.general.fields import Field, fields_of, folded, holds, in_words, names_in, page_of
from kbgym.agents.general.text import content_words, is_identifier, word_set

_PAGE = 0.5  # what a word on a document's page counts beside one in the document
_CLEARLY = 2.0  # how much more than any other page the evidence speaks of a question without a known name
_AS_GOOD = 0.95
_MOST = 4  # documents of one answer
_SEVERAL = 3  # pages with a label
_SHARED = 0.8  # of the members of a set state what makes them members


class Findings:
    """Documents in the order they were seen, and what they say of a question and its expected answers."""

    def __init__(self, question: str, answers: Sequence[str]) -> None:
        self.question, self.answers = question, [answer for answer in answers if answer.casefold() != "unknown"]
        self.names = [name for name in names_in(question) if content_words(name)]
        self.wanted = dict.fromkeys(content_words(question))
        self.texts: dict[str, str] = {}
        self._on_page: dict[str, set[str]] = {}  # words by page
        self._holding: Counter[str] = Counter()

    def see(self, shown: Iterable[tuple[str, str]]) -> None:
        for id, text in shown:
            if id not in self.texts:
                self.texts[id] = text
                self._holding.update(word_set(text))
                self._on_page.setdefault(page_of(text), set()).update(word_set(text))

    def relevance(self, words: Iterable[str]) -> float:
        """Return the share of the question's words among these, weighted by how rare they are."""
        weight = {word: math.log1p((len(self.texts) + 1) / (self._holding[word] + 0.5)) for word in self.wanted}
        held = frozenset(words)
        return sum(weight[word] for word in weight if word in held) / (sum(weight.values()) or 1.0)

    def worth(self, id: str) -> float:
        """Return how much of the question a document and its page speak of."""
        text = self.texts[id]
        return self.relevance(word_set(text)) + _PAGE * self.relevance(self._on_page[page_of(text)])

    def _speaking(self, stating: Sequence[str]) -> list[str]:
        """Return those documents that speak of something the question names, else those that one that does leads to.

        If no document seen has any of its names, return those of one page that clearly speaks of the question most.
        """
        if named := self._rarest_name():
            if direct := [id for id in stating if named <= self._on_page[page_of(self.texts[id])]]:
                return direct
            naming = [id for id, text in self.texts.items() if named <= word_set(text)]
            return [id for id in stating if any(self._names_page(one, id) for one in naming)]
        worth: dict[str, float] = {}
        for id in stating:
            worth[page_of(self.texts[id])] = max(worth.get(page_of(self.texts[id]), 0.0), self.worth(id))
        best, second, *_ = *sorted(worth.values(), reverse=True), 0.0, 0.0
        return [id for id in stating if worth[page_of(self.texts[id])] == best >= _CLEARLY * second] if best else []

    def _rarest_name(self) -> frozenset[str]:
        """Return the words of the name in the question that the fewest pages hold, of those that any page holds.

        A name is held by a page that writes it as the question does, so that a word that begins a sentence is none.
        """
        written = "\n".join(self.texts.values())
        names = [*self.names, *(word for name in self.names for word in name.split() if word[0].isupper())]
        names = [name for name in names if re.search(rf"(?<!\w){re.escape(name)}", written)]
        names += [word for word in self.wanted if is_identifier(word)]
        sought = {frozenset(content_words(name)) for name in names}
        pages = {name: sum(name <= words for words in self._on_page.values()) for name in sought}
        held = [name for name in pages if pages[name]]
        return min(held, key=lambda name: (pages[name], sorted(name)), default=frozenset())

    def stating(self) -> list[str]:
        """Return the documents that state an expected answer."""
        return [id for id, text in self.texts.items() if any(holds(text, answer) for answer in self.answers)]

    def evidence(self) -> list[str]:
        """Return the documents that state the answer and speak of the subject, and those that lead to them."""
        if any(holds(self.question, answer) for answer in self.answers):
            return self._compared()
        if not (stating := self._speaking(self.stating())):
            return []
        worth = {id: self.worth(id) for id in stating}
        ranked = sorted(stating, key=lambda id: -worth[id])
        chosen = [id for id in ranked if worth[id] >= _AS_GOOD * worth[ranked[0]]][: _MOST // 2]
        for name in self.names:  # one whose page does not state the answer leads to it
            if not any(self._tells_of(id, name) for id in chosen):
                leading = [id for id in self.texts if holds(self.texts[id], name) and self._leads(id, chosen[0])]
                chosen += sorted(leading, key=lambda id: -self.worth(id))[:1]
        return list(dict.fromkeys(chosen))[:_MOST]

    def _compared(self) -> list[str]:
        """Return the best document of each page that the question names, if it names several."""
        named = [[id for id, text in self.texts.items() if is_about(page_of(text), name)] for name in self.names]
        best = dict.fromkeys(max(ids, key=lambda id: (self.worth(id), id)) for ids in named if ids)
        return list(best)[:_MOST] if len(best) > 1 else []

    def _tells_of(self, id: str, name: str) -> bool:
        text = self.texts[id]
        return holds(text, name) or {*content_words(name)} <= self._on_page[page_of(text)]

    def _leads(self, id: str, end: str) -> bool:
        """Return True if a document names the page of another, or a name that the other has too."""
        text, other = self.texts[id], self.texts[end]
        shared = {*names_in(text)} & {*names_in(other)}
        return self._names_page(id, end) or any(len(name) > 4 and name not in self.question for name in shared)

    def _names_page(self, one: str, other: str) -> bool:
        """Return True if one of two documents names the page of the other."""
        text, end = self.texts[one], self.texts[other]
        return holds(text, bare(page_of(end))) or holds(end, bare(page_of(text)))

    # -- sets ---------------------------------------------------------------------------------------------------------

    def members(self) -> list[str]:
        """Return the parts of an answer that is a list, none where documents state it as a whole or it is no list."""
        first = self.answers[0] if self.answers else ""
        parts = [part.strip() for part in re.split(r",|;| and ", first) if part.strip()]
        return parts if len(parts) > 1 and not any(holds(text, first) for text in self.texts.values()) else []

    def member_documents(self, members: Sequence[str]) -> dict[str, list[str]]:
        """Return the documents of each member's page, or those that state it, best first."""
        found: dict[str, list[str]] = {}
        for member in members:
            words = frozenset(content_words(member))
            titled = [id for id, text in self.texts.items() if is_about(page_of(text), member)]
            stating = titled or [id for id, text in self.texts.items() if words and words <= word_set(text)]
            found[member] = sorted(stating, key=lambda id: (-self.worth(id), id))
        return found

    def asked_field(self, documents: Iterable[Sequence[str]] = ()) -> Field | None:
        """Return the field and value that a question asks by.

        The documents of a list's members must state it; without any, its label and its value are in the question.
        """
        groups = [{field for id in ids for field in fields_of(self.texts[id])} for ids in documents if ids]
        counts = Counter(field for group in groups for field in group)
        everywhere = Counter(field for text in self.texts.values() for field in fields_of(text))
        if groups:
            fitting = [field for field in counts if counts[field] >= max(2, _SHARED * len(groups))]
            fitting = [field for field in fitting if self._asks_by(field.value) or len(groups) == everywhere[field]]
        else:
            fitting = [field for field in everywhere if in_words(field) <= self.wanted.keys()]
            fitting = [field for field in fitting if {*content_words(field.label)} and {*content_words(field.value)}]
        return max(fitting, key=lambda one: (self._asks_by(one.value), -everywhere[one], one), default=None)

    def whole_field(self) -> Field | None:
        """Return the field that a question goes by as a whole, as "which has the lowest price?" does.

        Its label is in the question, several pages have it, none of them is named, and the answer is one of them or a
        count.
        """
        having: dict[str, set[str]] = {}
        for text in self.texts.values():
            for field in fields_of(text):
                having.setdefault(field.label, set()).add(page_of(text))
        first = self.answers[0] if self.answers else ""
        fitting = [
            label
            for label, pages in having.items()
            if len(pages) >= _SEVERAL
            and in_words(Field(label)) <= self.wanted.keys()
            and not any({*content_words(page)} <= self.wanted.keys() for page in pages)
            and (first.isdigit() or any(is_about(page, first) for page in pages))
        ]
        worth = {label: self.relevance(in_words(Field(label))) for label in fitting}
        return Field(max(fitting, key=lambda label: (worth[label], label))) if fitting else None

    def _asks_by(self, value: str) -> bool:
        return folded(value) in folded(self.question) or bool({*content_words(value)} & self.wanted.keys())


def bare(title: str) -> str:
    """Return a title without the bracket that tells it from others of its name."""
    return re.sub(r"\s*\([^()]*\)$", "", title) or title


def is_about(page: str, member: str) -> bool:
    """Return True if a page is that of a list's member; "Tomcat 9.0" and "Apache Tomcat" share the rarer words."""
    title, words = {*content_words(page)}, {*content_words(member)}
    return bool(title) and (title <= words or (len(words) > 0 and words <= title))
