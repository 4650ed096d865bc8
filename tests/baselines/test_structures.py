"""The structure of each arm, checked against the documents by a second path."""

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.analysis.health import coverage
from kbgym.baselines import build_arm, graphs
from kbgym.baselines.graphs import clusters
from kbgym.errors import BadInput
from kbgym.worlds.people import kind as people_oracle


def under(store, text):
    """The ids an authored document of this text links to."""
    (found,) = [record for record in store if record.flag == "authored" and record.text == text]
    return list(found.links)


# -- B3 ---------------------------------------------------------------------------------------------------------------


def test_the_paper_s_counts(paper):
    built = graphs.build_hipporag(paper.documents)
    assert built.store.links == 196_112
    assert len(built.store) - len(paper.documents) == built.notes["hubs"] == 660
    assert (built.notes["links_between_documents"], built.notes["links_of_hubs"]) == (173_756, 22_356)
    assert built.notes["crowded_names"] == 1
    assert coverage(built.store).direct == 1.0
    assert build_arm("flat", paper).store.links == 0


def test_documents_are_linked_when_they_name_the_same_person(small):
    store = graphs.build_hipporag(small.documents, crowd=12).store
    naming = defaultdict(set)
    for document in small.documents:
        for person in document.about:
            naming[person].add(document.id)
    pairs = {p for ids in naming.values() if len(ids) <= 12 for p in combinations(sorted(ids), 2)}
    originals = {document.id for document in small.documents}
    linked = {(a, b) for a in originals for b in store[a].links if b in originals}
    assert linked == pairs | {(b, a) for a, b in pairs}
    assert any(len(ids) > 12 for ids in naming.values())


def test_hubs_link_both_ways(small):
    store = graphs.build_hipporag(small.documents).store
    person = small.facts["people"][0]
    texts = {"name": person["name"], "job": f"job {person['job']}", "city": f"city {person['city']}"}
    assert set(under(store, texts["name"])) == {d.id for d in small.documents if person["id"] in d.about}
    assert set(under(store, texts["city"])) == {d.id for d in small.documents if d.text.endswith(f"{person['city']}.")}
    for hub in store:
        if hub.flag == "authored":
            assert all(hub.id in store[id].links for id in hub.links)


# -- B2, RAPTOR, LightRAG ---------------------------------------------------------------------------------------------


def test_a_community_s_summary_names_it_and_links_to_what_names_it(small):
    built = graphs.build_graphrag(small.documents)
    summaries = [record for record in built.store if record.flag == "authored"]
    assert len(summaries) == built.notes["communities"] > 1
    assert built.notes["largest"] <= graphs.SIZE
    assert all(not built.store[d.id].links for d in small.documents)
    for record in summaries:
        names = [name.removesuffix(" (job)").removesuffix(" (hobby)").removesuffix(" (city)")
                 for name in record.text.split(" about ")[1].split(", ")]  # fmt: skip
        assert set(record.links) == {d.id for d in small.documents if any(_names(d.text, name) for name in names)}
    assert coverage(built.store).direct == 1.0


def _names(text, name):
    return text.startswith((f"{name} ", f"{name}'s ")) or text.endswith(f" {name}.")


def test_the_tree_reaches_every_document_once(small, embedder):
    built = graphs.build_raptor(small.documents, embedder)
    store = built.store
    assert built.notes["levels"] == sorted(built.notes["levels"], reverse=True)
    assert built.notes["levels"][-1] <= graphs.SIZE
    assert all(len(store.inbound(document.id)) == 1 for document in small.documents)
    roots = [record for record in store if record.flag == "authored" and not store.inbound(record.id)]
    assert len(roots) == built.notes["levels"][-1]
    assert all(len(record.links) <= graphs.SIZE for record in store)
    with pytest.raises(BadInput):
        graphs.build_raptor(small.documents, embedder, size=1)


@given(st.integers(0, 60), st.integers(1, 9), st.integers(0, 3))
def test_clusters_are_a_partition_of_bounded_parts(rows, size, seed):
    vectors = np.random.default_rng(seed).integers(0, 3, (rows, 4)).astype(np.float32)
    parts = clusters(vectors, size)
    assert sorted(row for part in parts for row in part) == list(range(rows))
    assert all(0 < len(part) <= size for part in parts)


def test_near_vectors_stay_together():
    centres = np.repeat(np.eye(4, dtype=np.float32), 5, axis=0)
    noise = np.random.default_rng(0).normal(0, 0.02, centres.shape).astype(np.float32)
    assert clusters(centres + noise, 5) == [list(range(start, start + 5)) for start in (0, 5, 10, 15)]


def test_relations_are_documents(small):
    built = graphs.build_lightrag(small.documents)
    people = {person["id"]: person for person in small.facts["people"]}
    told = {(d.kind, *d.about): d.id for d in small.documents}
    for person in people.values():
        friends = person["friends"]
        if len(friends) > 1:
            expected = {told["friend", friend, person["id"]] for friend in friends}
            assert set(under(built.store, f"friend of {person['name']}")) == expected
            assert under(built.store, person["name"])


# -- the oracle -------------------------------------------------------------------------------------------------------


def test_the_oracle_s_indexes_hold_exactly_their_members(small):
    store = build_arm("oracle", small).store
    people = {person["id"]: person for person in small.facts["people"]}
    told = {(d.kind, *d.about): d.id for d in small.documents}
    for kind, text in people_oracle.INDEX_TEXTS.items():
        for value in {person[kind] for person in people.values()}:
            expected = {told[kind, id] for id, person in people.items() if person[kind] == value}
            assert set(under(store, text.format(value))) == expected
    count = 0
    for id, person in people.items():
        assert set(under(store, person["name"])) == {d.id for d in small.documents if id in d.about}
        if person["friends"]:
            assert under(store, f"Friends of {person['name']}") == [told["friend", id, f] for f in person["friends"]]
        grandchildren = {grand for child in person["children"] for grand in people[child]["children"]}
        if grandchildren:
            count += 1
            found = under(store, f"Grandchildren of {person['name']}")
            assert {store[link].text.split(" of ")[1].rstrip(".") for link in found} == {
                people[grand]["name"] for grand in grandchildren
            }
    assert count
    assert coverage(store).direct == 1.0


@pytest.mark.slow
def test_the_paper_s_two_slot_questions_under_the_reference_reader(paper):
    """A store with hubs answers all of them in about half the actions; summaries alone do not help this reader."""
    import asyncio

    from kbgym.agents.registry import make_agent
    from kbgym.baselines import engine_for_arm
    from kbgym.errors import Missing
    from kbgym.search.embed import default_embedder
    from kbgym.training.exam import examine, summarise
    from kbgym.training.probe import gradient_templates

    try:
        embedder = default_embedder()
    except Missing as missing:
        pytest.skip(f"the embedding model is not installed: {missing}")
    templates = gradient_templates(paper)
    questions = [question for question in paper.questions if question.template in templates]
    assert len(questions) == 138

    def exam(name):
        store = build_arm(name, paper, lambda: embedder).store
        engine = engine_for_arm(name, store, embedder)
        return summarise(asyncio.run(examine(store, engine, questions, make_agent("reference", "reader"))))

    flat_exam = exam("flat")
    assert 0.85 < flat_exam.f1 < 1.0
    for name in ("hipporag", "oracle"):
        summary = exam(name)
        assert summary.f1 > 0.99
        assert summary.actions < 0.65 * flat_exam.actions
