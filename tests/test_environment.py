"""Actions on a live store: what they do, what they say, and that search and guard see every change at once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from store_fixtures import Live, check_search, engine_of, records, step
from test_tools import HOSTILE

from kbgym.gym.actions import (
    Action,
    Add,
    Added,
    Answer,
    Answered,
    Delete,
    Done,
    Edit,
    Error,
    Finished,
    Found,
    Link,
    Linked,
    LinkMany,
    Merged,
    Opened,
    Read,
    Search,
    Unlink,
)
from kbgym.gym.environment import Environment
from kbgym.gym.tools import MOST_TARGETS, Role, parse
from kbgym.store import Store
from kbgym.trace.folder import StoreFolder


@pytest.fixture
def environment() -> Environment:
    store = Store(records())
    return Environment(store, engine_of(store))


def test_search_pages_cover_the_store_once(environment: Environment) -> None:
    seen: list[str] = []
    for page in (1, 2):
        result = step(environment, Search("who lives in Lund", page), "reader").result
        assert isinstance(result, Found) and result.page == page
        seen += result.ids
    assert sorted(seen) == sorted(record.id for record in environment.store)
    assert len(seen) == 9


def test_a_page_past_the_end_is_said_to_be_so(environment: Environment) -> None:
    for page in (3, 10**9):
        done = step(environment, Search("Lund", page))
        assert done.observation.text == f"Error: there is no page {page}; the results end before it."


def test_an_empty_store_has_an_empty_first_page() -> None:
    store = Store()
    done = step(Environment(store, engine_of(store)), Search("Lund"))
    assert (done.result, done.observation.text) == (Found((), 1), "Nothing found.")


def test_read_shows_everything_linked_one_level(environment: Environment) -> None:
    done = step(environment, Read("n2"))
    assert done.result == Opened("n2", ("d4", "hub/lund"))
    assert done.observation.text.splitlines()[2:] == [
        "[d4] Bo Ek works as a baker.",
        "[hub/lund] People who live in Lund.",
    ]
    assert "d0" not in done.observation.text


def test_answer_and_done(environment: Environment) -> None:
    assert step(environment, Answer(" Lund "), "reader").result == Answered()
    assert step(environment, Answer(" Lund "), "reader").action == Answer("Lund")
    assert step(environment, Done()).result == Finished()


def test_a_new_document_is_searchable_and_guarded_at_once(environment: Environment) -> None:
    text = "String quartets that rehearse Beethoven on Tuesdays."
    assert step(environment, Add(text)).result == Added("n3")
    found = step(environment, Search(text)).result
    assert isinstance(found, Found) and found.ids[0] == "n3"
    assert step(environment, Add("string quartets that rehearse beethoven on tuesdays")).result == Merged("n3")
    near = step(environment, Add("String quartets that rehearse Beethoven on a Tuesdays."))
    assert near.result == Merged("n3") and near.verdict is not None
    assert near.observation.text.startswith("The store already says this.")


def test_an_edited_document_is_found_under_its_new_text_only(environment: Environment) -> None:
    step(environment, Edit("d4", "Bo Ek plays the cello."))
    check_search(environment)
    scores = dict(environment.engine.nearest("Bo Ek works as a baker.", 100))
    assert scores["d4"] < 0.9


def test_an_edit_into_a_duplicate_merges(environment: Environment) -> None:
    step(environment, Link("d3", "d5"))
    done = step(environment, Edit("d5", "bo ek lives in lund"))
    assert done.result == Merged("d1", gone="d5")
    assert environment.store["d1"].absorbed == ("d5",)
    assert environment.store["d3"].links == ("d1",)
    check_search(environment)


def test_deleting_takes_it_out_of_search_and_links(environment: Environment) -> None:
    done = step(environment, Delete("hub/lund"))
    assert done.observation.text == "Deleted [hub/lund] and every link to it."
    assert environment.store["n2"].links == ("d4",)
    check_search(environment)
    assert step(environment, Read("hub/lund")).observation.text == "Error: there is no document hub/lund."


def test_link_many_takes_forty_and_names_what_it_skips(environment: Environment) -> None:
    ids = [environment.store.add(f"Number {n}.") for n in range(MOST_TARGETS)]
    done = step(environment, LinkMany("d0", tuple(ids)))
    assert isinstance(done.result, Linked) and len(done.result.linked) == MOST_TARGETS
    mixed = step(environment, LinkMany("d0", (ids[0], "zz", "d0", "d1")))
    assert mixed.result == Linked("d0", ("d1",), ("zz",), (ids[0],), True)
    before = environment.store.fingerprint
    assert isinstance(step(environment, LinkMany("d1", (*ids, "d0"))).result, Error), "one too many: nothing is linked"
    assert environment.store.fingerprint == before


MISTAKES: list[tuple[Action, Role, str]] = [
    (Read("zz"), "reader", "there is no document zz."),
    (Edit("zz", "X."), "curator", "there is no document zz."),
    (Delete("zz"), "curator", "there is no document zz."),
    (Link("zz", "d0"), "curator", "there is no document zz."),
    (Link("d0", "zz"), "curator", "there is no document zz."),
    (Link("d0", "d0"), "curator", "a document cannot link to itself."),
    (Link("hub/lund", "d1"), "curator", "hub/lund already links to d1."),
    (LinkMany("zz", ("d0",)), "curator", "there is no document zz."),
    (Unlink("d0", "d1"), "curator", "d0 has no link to d1."),
    (Unlink("zz", "d1"), "curator", "there is no document zz."),
    (Add(" "), "curator", "text is empty."),
    (Edit("d0", ""), "curator", "text is empty."),
    (Search("x", 0), "reader", "there is no page 0; pages start at 1."),
    (Delete("d0"), "reader", "there is no tool 'delete' here; the tools are search, read, answer."),
    (Answer("x"), "curator", "there is no tool 'answer' here"),
    (Read("../../etc/passwd"), "reader", "there is no document ../../etc/passwd."),
]


@pytest.mark.parametrize(("action", "role", "said"), MISTAKES, ids=[str(n) for n in range(len(MISTAKES))])
def test_mistakes_are_one_clear_line_and_change_nothing(
    environment: Environment, action: Action, role: Role, said: str
) -> None:
    before = list(environment.store)
    done = step(environment, action, role)
    assert isinstance(done.result, Error)
    assert done.observation.text.startswith(f"Error: {said}") and "\n" not in done.observation.text
    assert list(environment.store) == before


@pytest.mark.parametrize("action", [Add("New."), Add("Bo Ek lives in Lund."), Edit("d0", "New."), Delete("d0")])
def test_a_frozen_store_says_so(environment: Environment, action: Action) -> None:
    environment.store.freeze()
    assert step(environment, action).observation.text.startswith("Error: the store is frozen")
    assert step(environment, Search("Lund")).observation.text.startswith("[")


def test_hostile_calls_change_nothing_and_the_trace_stays_writable_and_replayable(tmp_path: Path) -> None:
    live = Live(tmp_path / "s")
    before = list(live.store)
    calls: list[tuple[str, Any]] = [(name, arguments) for name, arguments, _ in HOSTILE]
    calls += [("read", {"id": "a/../b"}), ("search", {"query": "x", "page": 10**9}), ("delete", {"id": "x" * 200})]
    for name, arguments in calls:
        done = live.act(parse(name, arguments, "curator"))
        assert isinstance(done.result, Error)
        assert (
            done.observation.text.startswith("Error: ")
            and len(done.observation.text) < 300
            and "\n" not in done.observation.text
        )
    assert list(live.store) == before
    live.act(Add("It still works."))
    live.commit()
    live.close()
    folder = StoreFolder(tmp_path / "s")
    assert list(folder.store()) == list(live.store)
    assert len(folder.events) == len(calls) + 4


def test_the_search_is_told_of_new_texts_before_the_guard_looks_for_their_neighbours(environment: Environment) -> None:
    """A search that has its vectors made elsewhere makes them there, without holding up the rest."""
    heard: list[tuple[str, tuple[str, ...]]] = []

    class Heard:
        trained = None

        async def prepare(self, texts: Iterable[str]) -> None:
            heard.append(("prepare", tuple(texts)))

        def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[tuple[str, float]]:
            heard.append(("nearest", (text,)))
            return []

        def search(self, query: str, offset: int, limit: int) -> list[tuple[str, float]]:
            heard.append(("search", (query,)))
            return []

        def put(self, id: str, text: str) -> None: ...

        def remove(self, id: str) -> None: ...

    heard_by = Environment(environment.store, Heard())
    step(heard_by, Add("Readers of Ibsen."))
    step(heard_by, Search("Ibsen"))
    names = [(what, texts) for what, texts in heard if texts]
    assert names[:2] == [("prepare", ("Readers of Ibsen.",)), ("nearest", ("Readers of Ibsen.",))]
    assert names[2:] == [("prepare", ("Ibsen",)), ("search", ("Ibsen",))]
