"""Levels: how an index is cut, how the curator builds it, how the agenda keeps it whole, how the reader uses it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.actions import Add, LinkMany, Read, Search
from kbgym.agents.reference.agenda import ReferenceAgenda
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.language import IndexKey, index_key, index_text, is_index
from kbgym.agents.reference.levels import holds, part_of, parts_for, split
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.artefact.parts import embedder_named, engine_for
from kbgym.environment import Environment
from kbgym.episode import Transcript, play
from kbgym.policy import Backward, Errand, Forward
from kbgym.store import Store, source

KEY = IndexKey("job", "tanner", "city")
CITIES = [f"{letter}ford" for letter in "ABCDEFGHIJKLMNOPQRST"]
PEOPLE = [f"{first} {last}" for last in ("Bell", "Dow", "Fox") for first in ("Ann", "Cy", "Eve", "Gus", "Ida", "Jo")]


def town(number: int) -> tuple[str, str]:
    return f"c{number}", f"{PEOPLE[number]} lives in the city of {CITIES[number]}."


def job(number: int) -> tuple[str, str]:
    return f"j{number}", f"{PEOPLE[number]}'s job is tanner."


TOWNS = [town(number) for number in range(len(PEOPLE))]


@given(st.lists(st.sampled_from(CITIES), min_size=1, max_size=60), st.integers(2, 20))
def test_parts_lose_nothing_and_cut_no_value_in_two(values, most):
    documents = [(f"d{number}", f"P{number} Q lives in the city of {value}.") for number, value in enumerate(values)]
    parts = split(KEY, documents, most)
    assert sorted(id for _, ids in parts for id in ids) == sorted(id for id, _ in documents)
    for value in set(values):
        (only,) = [part for part, _ in parts if holds(part, value)]
        assert {id for id, text in documents if f"of {value}." in text} <= set(dict(parts)[only])
    ends = [end for part, _ in parts for end in part.part]
    assert ends == sorted(ends), "the parts follow one another"


def test_a_part_is_recognised_and_taken_for_nothing_else():
    part = IndexKey("job", "tanner", "city", ("Aford", "Dford"))
    text = index_text(part)
    assert text == "Cities of people whose job is tanner, from Aford to Dford"
    assert index_key(text) == part and is_index(text, part) and part_of(text, KEY) == part
    assert not is_index(text, KEY) and not is_index(text, KEY.base) and part_of(index_text(KEY), KEY) is None
    assert part_of(text, IndexKey("job", "smith", "city")) is None
    assert index_key("People whose job is clerk, from A to B") == IndexKey("job", "clerk, from A to B"), (
        "only narrower keys"
    )


def test_the_part_for_a_value_is_picked_or_all_of_them():
    parts = [("n1", index_text(IndexKey("job", "tanner", "city", ("Aford", "Dford"))))]
    parts.append(("n2", index_text(IndexKey("job", "tanner", "city", ("Eford", "Hford")))))
    shown = [*parts, ("d1", "Ann Bell lives in the city of Zford."), ("n3", index_text(KEY))]
    assert parts_for(shown, KEY, "Fford") == ["n2"]
    assert parts_for(shown, KEY, None) == ["n1", "n2"]
    assert parts_for(shown, KEY, "Zford") == []


def curated(store: Store, errand: Errand, budget: int = 30, levels: int = 6) -> Transcript:
    environment = Environment(store, engine_for(store, embedder_named("hash")))
    task = Backward("", (), (), 1.0, "right", (errand,))
    return asyncio.run(play(ReferenceCurator(levels), environment, "curator", task, budget))


def flat_store() -> Store:
    return Store(source(id, text) for id, text in (*TOWNS, *map(job, range(len(PEOPLE)))))


def indexes(store: Store) -> dict[IndexKey, tuple[str, ...]]:
    authored = [record for record in store if record.flag == "authored"]
    return {key: record.links for record in authored if (key := index_key(record.text)) is not None}


def test_the_curator_writes_parts_and_an_index_of_them():
    store = flat_store()
    curated(store, Errand("job", "tanner", "sibling", tuple(TOWNS), then="city"))
    found = indexes(store)
    parts = [key for key in found if key.part is not None]
    assert len(parts) == 9 and all(len(found[part]) == 2 for part in parts), "a third of six, eighteen documents"
    assert [part_of(store[id].text, KEY) for id in found[KEY]] == parts


@pytest.mark.parametrize("levels", [0, 18])
def test_an_index_that_is_small_enough_or_has_one_value_stays_flat(levels):
    store = flat_store()
    curated(store, Errand("job", "tanner", "sibling", tuple(TOWNS), then="city"), levels=levels)
    assert indexes(store) == {KEY: tuple(id for id, _ in TOWNS)}
    alike = [source(f"d{number}", f"{name} lives in the city of Aford.") for number, name in enumerate(PEOPLE)]
    store = Store(alike)
    curated(store, Errand("job", "tanner", "sibling", tuple((one.id, one.text) for one in alike), then="city"))
    assert list(indexes(store)) == [KEY]


def feed(agenda: ReferenceAgenda, transcript: Transcript) -> None:
    for one in transcript.steps:
        agenda.note_turn(one.action, one.observation)


def ready_agenda(store: Store) -> ReferenceAgenda:
    agenda = ReferenceAgenda()
    agenda.note_question("Who is the tanner who lives in the city of Aford?")
    shown = "\n".join(f"[{record.id}] {record.text}" for record in store)
    agenda.note_turn(Search("x"), shown)
    index = store.add(index_text(KEY.base))
    members = tuple(id for id, _ in map(job, range(len(PEOPLE))))
    store.link(index, members)
    agenda.note_turn(Add(index_text(KEY.base)), f"Added.\n[{index}] {index_text(KEY.base)}")
    agenda.note_turn(LinkMany(index, members), f"Linked [{index}] to {len(members)} documents.")
    return agenda


def errand_for(agenda: ReferenceAgenda, then: str = "city") -> Errand | None:
    return next((one for one in agenda.errands("") if (one.value, one.then) == ("tanner", then)), None)


def test_a_pass_that_ends_in_between_is_gone_on_with():
    store = flat_store()
    agenda = ready_agenda(store)
    first = errand_for(agenda)
    assert first is not None and len(first.known) == len(TOWNS)
    feed(agenda, curated(store, first, budget=10))
    assert KEY not in indexes(store) and not [one for one in store if one.flag == "authored" and not one.links]
    again = errand_for(agenda)
    assert again is not None and len(parts_for(again.known, KEY, None)) == 4 and len(again.known) == 4 + 10
    feed(agenda, curated(store, again))
    found = indexes(store)
    assert len(found[KEY]) == 9
    assert sorted(id for part, ids in found.items() if part.part for id in ids) == sorted(id for id, _ in TOWNS)
    assert errand_for(agenda) is None, "nothing is missing"


def test_a_document_that_turns_up_later_is_linked_from_its_part_or_from_the_whole():
    store = flat_store()
    agenda = ready_agenda(store)
    errand = errand_for(agenda)
    assert errand is not None
    feed(agenda, curated(store, errand))
    late = ["[x1] New Man's job is tanner.\n[x2] New Man lives in the city of Agford."]
    late.append("[x3] Old Man's job is tanner.\n[x4] Old Man lives in the city of Zford.")
    agenda.note_turn(Search("y"), "\n".join(late))
    due = {(one.part, one.index): one.known for one in agenda.errands("") if one.then == "city"}
    by_text = {record.text: record.id for record in store}
    part = IndexKey("job", "tanner", "city", ("Aford", "Bford"))
    assert due == {
        (part.part, by_text[index_text(part)]): (("x2", "New Man lives in the city of Agford."),),
        (None, by_text[index_text(KEY)]): (("x4", "Old Man lives in the city of Zford."),),
    }


def test_a_reader_reads_the_index_and_the_one_part_it_needs():
    store = flat_store()
    curated(store, Errand("job", "tanner", "sibling", tuple(TOWNS), then="city"))
    environment = Environment(store, engine_for(store, embedder_named("hash")))
    question = f"Who is the tanner who lives in the city of {CITIES[7]}?"
    transcript = asyncio.run(play(ReferenceReader(), environment, "reader", Forward(question), 15))
    assert transcript.answer == PEOPLE[7]
    opened = [store[one.action.id].text for one in transcript.steps if isinstance(one.action, Read)]
    assert opened[-1] == index_text(IndexKey("job", "tanner", "city", (CITIES[6], CITIES[7])))
    assert opened[:-1] in ([], [index_text(KEY)])
    assert isinstance(transcript.steps[-2].action, Read), "and looks nobody up who is in another part"


def test_a_reader_that_needs_all_of_it_reads_every_part():
    store = Store(source(id, text) for id, text in TOWNS)
    parts = [("Aford", "Iford"), ("Jford", "Rford")]
    whole = store.add(index_text(IndexKey("friend", "Max Orr", "city")))
    for number, ends in enumerate(parts):
        part = store.add(index_text(IndexKey("friend", "Max Orr", "city", ends)))
        store.link(part, [id for id, _ in TOWNS[9 * number : 9 * number + 9]])
        store.link(whole, [part])
    environment = Environment(store, engine_for(store, embedder_named("hash")))
    reader = ReferenceReader()
    found = asyncio.run(environment.step(Read(whole), "reader"))
    shown = [(whole, store[whole].text)]
    plan = reader._read_index(shown, IndexKey("friend", "Max Orr", "city"))
    observation, stated = None, []
    while True:
        try:
            action = plan.send(observation)
        except StopIteration as end:
            stated = end.value
            break
        observation = asyncio.run(environment.step(action, "reader")).observation
    assert len(stated) == len(TOWNS) and "It links to 2" in found.observation
