"""The general curator: given the expected answer, it links the evidence of a question to the question's words.

It searches for the evidence of the answer (`evidence.py`) and writes an *alias*: a document whose text is the question
and the names of its evidence, linked to the evidence. Where the answer is a list or a count over a field, it completes
the index of that value by rule. With an agenda it then completes further values of fields that questions ask by. It
knows no grammar and no world, and an answer never goes into a text.
"""

from __future__ import annotations

import re

from kbgym.agents.general.evidence import Findings
from kbgym.agents.general.fields import Field, fields_of, holds, page_of, sentences
from kbgym.agents.general.pointers import pointer
from kbgym.agents.general.text import content_words, split_title, word_set
from kbgym.gym.actions import Action, Add, Done, Search
from kbgym.gym.observations import documents
from kbgym.gym.policy import Backward, IndexTask, PlannedCurator, Steps, View
from kbgym.gym.tools import PAGE_SIZE

MOST_NAMES, MOST_PAGES = 3, 2  # maximum names of a question, and pages of candidates, to look up
MOST_MEMBERS = 12  # maximum members of a list to look up individually
MOST_OF_VALUE = 60  # maximum documents of one value; more common values are not distinctive
MOST_OF_FIELD = 150
LONGEST = 400  # maximum characters of an alias beside its question
_ADDRESS = re.compile(r"(?<!\w)\w+://\S+")

Working = Steps[None]


class GeneralCurator(PlannedCurator):
    """One pass: index the evidence of its question, then follow the agenda if the task has one."""

    def _plan_pass(self, view: View) -> Steps[Action]:
        task = view.task
        assert isinstance(task, Backward)
        found = Findings(task.question, task.golds)
        for turn in task.forward:
            found.see(documents(turn.observation)[:PAGE_SIZE])
        if found.answers:
            yield from self._teach(found)
        for index_task in task.agenda:
            if self.remaining > index_task.cost:
                yield from self._complete(Field(index_task.kind, index_task.value), index_task, found)
        return Done()

    def _teach(self, found: Findings) -> Working:
        shown = yield from self._search(found.question, found)
        if any(text.startswith(alias_start(found.question)) for _, text in shown):
            return
        yield from self._search(f"{found.question} {found.answers[0]}", found)
        members = found.members()
        if members or re.fullmatch(r"\d{1,4}", found.answers[0]):
            yield from self._teach_set(found, members)
            return
        if (whole := found.whole_field()) is not None:
            yield from self._teach_field(whole, found)
            return
        yield from self._search(found.answers[0], found)
        for name in found.names[:MOST_NAMES]:
            yield from self._search(f"{name} {found.answers[0]}", found)
        for page in self._candidates(found):
            yield from self._search(f"{page} {found.question}", found)
        if evidence := found.evidence():
            yield from self._search(page_of(found.texts[evidence[0]]), found)  # the introduction of the page itself
            yield from self._write(alias_of(found, evidence), evidence)

    def _teach_field(self, whole: Field, found: Findings) -> Working:
        """Write the index of a whole field."""
        stating = yield from self._gather(whole, found)
        if len(stating) <= MOST_OF_FIELD:
            yield from self._write(f"{whole.text}. {found.question}", stating)

    def _candidates(self, found: Findings) -> list[str]:
        """Return the likeliest pages of documents that state the answer."""
        ranked = sorted(found.stating(), key=lambda id: -found.worth(id))
        return list(dict.fromkeys(page for id in ranked if (page := page_of(found.texts[id]))))[:MOST_PAGES]

    def _teach_set(self, found: Findings, members: list[str]) -> Working:
        """Complete the field value that a list or a count is based on; otherwise link the members themselves."""
        for member in members[:MOST_MEMBERS]:
            yield from self._search(f"{member} {found.question}", found)
        by_member = found.member_documents(members)
        field = found.asked_field(by_member.values())
        if field is not None:
            linked = yield from self._gather(field, found)
            pages = {page_of(found.texts[id]) for id in linked}
            expected = len(members) or int(found.answers[0])
            if len(pages) >= expected and (members or len(pages) == expected):
                question = found.question if len(linked) <= MOST_OF_VALUE else ""
                yield from self._write(f"{field.text}. {question}".strip(), linked)
                return
        elif not members and (whole := found.whole_field()) is not None:
            yield from self._teach_field(whole, found)
            return
        if members:
            evidence = [ids[0] for ids in by_member.values() if ids]
            if len(evidence) == len(members):
                yield from self._write(alias_of(found, evidence), evidence)
        elif evidence := found.evidence():
            yield from self._write(alias_of(found, evidence), evidence)

    # -- field values --------------------------------------------------------------------------------------------------

    def _gather(self, field: Field, found: Findings) -> Steps[list[str]]:
        """Return every document that states a value, paging through one search until a page adds none."""
        for page in range(1, 2 + MOST_OF_VALUE // PAGE_SIZE):
            shown = yield from self._search(field.text if field.value else field.label, found, page)
            if not any(field.is_stated(text) for _, text in shown):
                break
        return [id for id, text in found.texts.items() if field.is_stated(text)]

    def _complete(self, field: Field, task: IndexTask, found: Findings) -> Working:
        found.see(task.known)
        if task.lookups:
            yield from self._gather(field, found)
        stating = [id for id, text in found.texts.items() if field.is_stated(text) and id not in task.linked]
        if task.index is not None:
            yield from self._link(task.index, stating)
        elif len(stating) > 1:
            yield from self._write(task.text, stating)

    # -- tools ---------------------------------------------------------------------------------------------------------

    def _search(self, query: str, found: Findings, page: int = 1) -> Steps[list[tuple[str, str]]]:
        if self.remaining <= 3:  # adding, linking and finishing
            return []
        shown = documents((yield Search(query[:1000], page)))
        found.see(shown[:PAGE_SIZE])  # later results are learnt documents, which state nothing themselves
        return shown

    def _write(self, text: str, members: list[str]) -> Working:
        if self.remaining > 2 and members:
            shown = documents((yield Add(text)))
            if shown:
                yield from self._link(shown[0][0], [id for id in members if id != shown[0][0]])


def alias_start(question: str) -> str:
    """Return the first words of a question's alias."""
    return " ".join(question.split()).rstrip(" ?.!") + ". "


def alias_of(found: Findings, evidence: list[str]) -> str:
    """Return the text of an alias: the question, where its answer stands, then names and statements of the evidence.

    The answer itself and addresses are omitted.
    """
    places = (
        pointer(found.texts[id], found.answers, lambda one: found.relevance(content_words(one))) for id in evidence
    )
    parts: dict[str, None] = {f"{place}." if place else "": None for place in places}
    for id in evidence:
        text = found.texts[id]
        page = page_of(text)
        stated = next((one for one in sentences(text) if any(holds(one, a) for a in found.answers)), "")
        parts.update(dict.fromkeys((f"{page}." if page else "", _introduction(page, found), stated)))
    said = _ADDRESS.sub("", " ".join(filter(None, parts)))
    for answer in sorted(found.answers, key=len, reverse=True):
        said = re.sub(rf"(?<!\w){re.escape(answer)}(?!\w)", "", said, flags=re.IGNORECASE)
    return alias_start(found.question) + " ".join(said.split())[:LONGEST].rstrip()


def _introduction(page: str, found: Findings) -> str:
    """Return the sentence that introduces a page: the first that begins with its name and is no field."""
    first = content_words(page)[:1]
    for text in found.texts.values():
        if first and split_title(text)[0].split(" > ")[0] == page:
            for one in sentences(text):
                if content_words(one)[:1] == first and len(word_set(one)) > 3 and not fields_of(f"{page}: {one}"):
                    return one
    return ""
