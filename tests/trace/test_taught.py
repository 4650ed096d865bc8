"""Lessons taught by people, as a listener reads them from the trace."""

from __future__ import annotations

import pytest

from kbgym.gym.actions import NOTHING, Add, Added, Corrected, Linked, Merged, Result
from kbgym.store import Store, source
from kbgym.trace.corrections import Corrections, Taught
from kbgym.trace.events import Acted, Began, Ended, Event, Graded, Noted

TEXTS = {"d1": "Ada is a baker.", "d2": "Bo is a smith."}


@pytest.fixture
def store() -> Store:
    return Store(source(id, text) for id, text in TEXTS.items())


def lesson(question: str, *results: Result) -> list[Event]:
    """A lesson by a person, whose backward pass had these results."""
    events: list[Event] = [Noted(1, "taught", {"question": question, "by": "ada", "on": "2026-11-19"})]
    events += [Graded(1, question, ("baker",), 0.0, 0.0), Began(1, "backward", "teacher", question, "What is Ada?")]
    events += [Acted(1, "backward", number, Add("x"), result) for number, result in enumerate(results, 1)]
    return [*events, Ended(1, "backward", "done"), Acted(2, "backward", 1, Add("x"), Added("later"))]


def heard(store: Store, *events: Event) -> Corrections:
    corrections = Corrections()
    for event in events:
        corrections(event, store, NOTHING)
    return corrections


def test_a_correction_has_the_texts_it_supersedes(store: Store) -> None:
    id = store.correct("Ada is a cooper.", ("d1",))
    corrections = heard(store, *lesson("q", Corrected(id, ("d1",))))
    found = corrections.lessons["q"]
    assert (found.kind, found.document, found.made) == ("correction", id, True)
    assert (found.by, found.answers, found.text, found.iteration) == ("ada", ("baker",), "What is Ada?", 1)
    assert found.supersedes == {"d1": TEXTS["d1"]} and found.changed_since(store) == []
    assert corrections.standing(store) == [found]
    store.edit("d1", "Ada is a tailor.")
    assert found.changed_since(store) == ["d1"]
    store.delete("d1")
    assert found.changed_since(store) == ["d1"]
    store.delete(id)
    assert corrections.standing(store) == []


@pytest.mark.parametrize(("first", "made"), [(Added("n1"), True), (Merged("n1"), False)])
def test_an_alias_stands_while_its_document_or_its_links_do(store: Store, first: Result, made: bool) -> None:
    id = store.add("What Ada is.")
    store.link(id, ("d1",))
    found = heard(store, *lesson("q", first, Linked(id, ("d1",)), Linked(id, ()))).lessons["q"]
    assert (found.kind, found.document, found.links, found.made) == ("alias", "n1", ("d1",), made)
    assert found.stands(store)
    store.unlink(id, "d1")
    assert found.stands(store) == made


def test_other_lessons_change_nothing(store: Store) -> None:
    others = [event for event in lesson("other", Added("n1")) if not isinstance(event, Noted)]
    corrections = heard(store, *others, *lesson("q"), *others)
    assert corrections.lessons == {
        "q": Taught("q", "ada", "2026-11-19", text="What is Ada?", answers=("baker",), iteration=1)
    }
    assert not corrections.lessons["q"].stands(store) and corrections.standing(store) == []
    corrections.clear()
    assert corrections.lessons == {}
