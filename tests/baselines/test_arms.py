"""Properties of every arm: untouched originals, no dangling links, equal bytes on a second run, no use of questions."""

import asyncio
import random
import sys
from collections import Counter
from itertools import combinations

import msgspec
import pytest

from kbgym.agents.registry import make_agent
from kbgym.baselines import ARMS, arm_named, build_arm, engine_for_arm
from kbgym.baselines.graphs import leiden
from kbgym.errors import BadInput, Missing
from kbgym.store import ledger, source
from kbgym.trace.backend import save_store
from kbgym.trace.folder import open_folder
from kbgym.training.exam import examine, summarise
from kbgym.worlds.world import Document, World

BUILT = [name for name in ARMS if name != "nostore"]


@pytest.mark.parametrize("name", BUILT)
def test_originals_keep_their_text_and_provenance(name, small, embedder):
    store = build_arm(name, small, lambda: embedder).store
    for document in small.documents:
        assert msgspec.structs.replace(store[document.id], links=()) == source(document.id, document.text)
    counts = ledger(store)
    assert counts.untouched == counts.origins == len(small.documents)
    assert counts.lost_origins == counts.empty_indexes == counts.same_texts == 0


@pytest.mark.parametrize("name", list(ARMS))
def test_a_store_survives_the_disk(name, small, embedder, tmp_path):
    store = build_arm(name, small, lambda: embedder).store
    save_store(store, tmp_path / name)
    again = open_folder(tmp_path / name).store()  # opening checks for dangling and double links
    assert again.fingerprint == store.fingerprint
    assert [record.id for record in again] == [record.id for record in store]


@pytest.mark.parametrize("name", list(ARMS))
def test_the_same_documents_give_the_same_store_whatever_is_asked(name, small, embedder):
    unasked = World(small.documents, (), small.facts)
    assert (
        build_arm(name, small, lambda: embedder).store.fingerprint
        == build_arm(name, unasked, lambda: embedder).store.fingerprint
    )


@pytest.mark.parametrize("name", [name for name in ARMS if name != "oracle"])
def test_only_the_words_count(name, small, embedder):
    """No arm but the oracle sees kinds, subjects or facts."""
    bare = World(tuple(Document(document.id, document.text) for document in small.documents))
    assert (
        build_arm(name, small, lambda: embedder).store.fingerprint
        == build_arm(name, bare, lambda: embedder).store.fingerprint
    )


@pytest.mark.parametrize("name", [name for name in ARMS if name != "oracle"])
@pytest.mark.parametrize("texts", [[], ["no entity at all"], ["Ann Bly met Bo Cade."] * 3])
def test_odd_corpora_build(name, texts, embedder):
    world = World(tuple(Document(f"n{place}", text) for place, text in enumerate(texts, 1)))
    store = build_arm(name, world, lambda: embedder).store
    assert ledger(store).untouched == (0 if name == "nostore" else len(texts))


def test_arms_without_structure_have_no_links(small, embedder):
    for name in ("flat", "bm25", "nostore"):
        assert build_arm(name, small, lambda: embedder).store.links == 0


def exam(name, world, embedder):
    store = build_arm(name, world, lambda: embedder).store
    engine = engine_for_arm(name, store, embedder)
    questions = [question for question in world.questions if question.template == "common-friend"]
    return summarise(asyncio.run(examine(store, engine, questions, make_agent("reference", "reader"))))


def test_the_reference_reader_reads_hubs_and_indexes(small, embedder):
    flat = exam("flat", small, embedder)
    for name in ("hipporag", "lightrag", "oracle"):
        summary = exam(name, small, embedder)
        assert summary.f1 == 1.0
        assert summary.actions < flat.actions


def test_no_store_no_answer(small, embedder):
    assert exam("nostore", small, embedder).f1 == 0.0


def test_words_are_searched_as_words(small, embedder):
    store = build_arm("bm25", small, lambda: embedder).store
    engine = engine_for_arm("bm25", store, embedder)
    person = next(person for person in small.facts["people"] if len(person["friends"]) > 1)
    found = [store[id].text for id, _ in engine.search(f"Friends of {person['name']}", 0, 2)]
    assert all(" is a friend of " in text and person["name"] in text for text in found)
    assert engine.nearest(found[0], 3) == []
    engine.put("new", "Zebedee Quince juggles.")
    assert engine.search("juggle", 0, 5)[0][0] == "new"
    engine.remove("new")
    assert engine.search("juggle", 0, 5) == []


def test_an_unknown_arm_is_named():
    with pytest.raises(BadInput, match=r"no arm 'nosuch'.*hipporag"):
        arm_named("nosuch")


def test_the_oracle_needs_facts(embedder):
    with pytest.raises(BadInput, match="facts are known"):
        build_arm("oracle", World((Document("d", "A text."),)), lambda: embedder)


def test_what_is_not_installed_is_named(small, embedder, monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(Missing, match=r"kbgym\[report\]"):
        build_arm("graphrag", small, lambda: embedder)


def test_leiden_keeps_circles_together_and_the_process_generator_usual():
    circles = [range(5), range(5, 10), range(10, 15)]
    edges = Counter({pair: 1 for circle in circles for pair in combinations(circle, 2)})
    edges[4, 5] = edges[9, 10] = 1
    random.seed(7)
    state = random.getstate()
    assert leiden(15, edges, 10, 0) == [list(circle) for circle in circles]
    assert random.getstate() == state
    assert all(len(community) <= 2 for community in leiden(15, edges, 2, 0))
    assert sorted(node for community in leiden(15, edges, 2, 0) for node in community) == list(range(15))
