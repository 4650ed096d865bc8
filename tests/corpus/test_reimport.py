"""A trained store follows its files: exact provenance, nothing of training lost, replayable to the byte."""

from pathlib import Path

import pytest

import kbgym
from kbgym.corpus.store_update import affected_indexes, reimport
from kbgym.corpus.update import Changes, changes
from kbgym.errors import BadInput, Damaged
from kbgym.gym.actions import Action, Add, Delete, Edit, Link, LinkMany
from kbgym.gym.environment import apply
from kbgym.store import Record, Refused, Store, ledger
from kbgym.store.guard import Check, Verdict
from kbgym.trace.events import SCHEMA, Acted, Committed, Genesis, Imported
from kbgym.trace.folder import StoreFolder
from kbgym.trace.replay import replay
from kbgym.worlds.world import Document, Source, World


def doc(id: str, text: str, *links: str) -> Document:
    return Document(id, text, "sentence", source=Source("boats.md", 0, len(text)), links=links)


OLD = World(
    (
        doc("k", "The Kestrel is red."),
        doc("p", "The Petrel is green."),
        doc("b", "The Brent is old.", "k"),
        doc("x", "Ruth is here."),
    )
)
NEW = World(
    (
        doc("k", "The Kestrel is blue."),
        doc("b", "The Brent is old.", "n"),
        doc("n", "The Dipper is new.", "k", "b"),
        doc("x", "Ruth is here."),
    )
)


def trained(tmp_path: Path, *actions: Action, verdict: Verdict | None = None) -> Path:
    """A run folder whose store an agent has worked on."""
    run = tmp_path / "run"
    OLD.save(run / "world")
    folder = StoreFolder(run)
    store = folder.store()
    with folder.start("hash", {}) as writer:
        acts = [
            Acted(1, "backward", n, action, apply(store, action, verdict), verdict)
            for n, action in enumerate(actions, 1)
        ]
        writer.commit([*acts, Committed(1, 1, store.fingerprint, len(store), store.links)])
    return run


def test_a_world_with_links_is_a_store_with_links(tmp_path):
    OLD.save(tmp_path / "w")
    assert StoreFolder(tmp_path / "w").store()["b"].links == ("k",)


def test_links_of_a_world_are_checked():
    for links in (("nowhere",), ("a",), ("b", "b")):
        with pytest.raises(BadInput, match="document a links"):
            World((doc("a", "Ruth.", *links), doc("b", "Karl.")))


def test_it_follows(tmp_path):
    run = trained(tmp_path, Add("Boats by colour"), LinkMany("n1", ("k", "p", "b")))
    done = reimport(run, NEW)
    assert (done.iteration, done.added, done.edited, done.removed, done.restored) == (2, 1, 1, 1, 0)
    assert [(index.id, index.edited, index.removed) for index in done.affected] == [("n1", ("k",), ("p",))]
    store = StoreFolder(run).store()
    assert {r.id: r.text for r in store} == {**{d.id: d.text for d in NEW.documents}, "n1": "Boats by colour"}
    assert store["k"] == Record("k", "The Kestrel is blue.", origin="k")
    assert store["n"] == Record("n", "The Dipper is new.", ("k", "b"), origin="n")
    assert store["n1"].links == ("k", "b") and store["b"].links == ("n",)
    counts = ledger(store)
    assert (counts.origins, counts.lost_origins, counts.untouched, counts.authored) == (4, 0, 4, 1)


def test_twice_is_once_and_training_goes_on_where_it_was(tmp_path):
    run = trained(tmp_path, Add("Boats by colour"), Link("n1", "k"))
    reimport(run, NEW)
    before = (run / "trace.jsonl").read_bytes()
    again = reimport(run, NEW)
    assert (again.iteration, again.added, again.edited, again.removed) == (2, 0, 0, 0)
    assert (run / "trace.jsonl").read_bytes() == before
    last = StoreFolder(run).events[-1]
    assert isinstance(last, Committed) and (last.iteration, last.position) == (2, 1)


def test_history_can_be_visited_and_rolled_back(tmp_path):
    run = trained(tmp_path, Add("Boats by colour"), Link("n1", "k"))
    first = StoreFolder(run).store().fingerprint
    reimport(run, NEW)
    assert StoreFolder(run).store(1).fingerprint == first
    folder = StoreFolder(run)
    folder.rollback(1)
    assert StoreFolder(run).store().fingerprint == first
    assert StoreFolder(run).originals() == {d.id: d for d in OLD.documents}
    assert reimport(run, NEW).edited == 1  # what was rolled back is to be done again


def test_sources_of_imported_documents_are_known(tmp_path):
    run = trained(tmp_path, Add("Boats by colour"))
    reimport(run, NEW)
    assert kbgym.open(run).sources(["n", "k", "p"]) == {"n": NEW.documents[2].source, "k": NEW.documents[0].source}


def test_the_file_wins_over_an_agents_edit_and_that_is_said(tmp_path):
    run = trained(tmp_path, Edit("k", "The Kestrel is red and fast."))
    done = reimport(run, NEW)
    assert done.overwritten == ("k",)
    assert StoreFolder(run).store()["k"] == Record("k", "The Kestrel is blue.", origin="k")


def test_what_an_agent_deleted_comes_back_only_if_its_file_changed(tmp_path):
    run = trained(tmp_path, Delete("k"), Delete("x"))
    done = reimport(run, NEW)
    store = StoreFolder(run).store()
    assert done.restored == 1 and "k" in store and "x" not in store
    assert ledger(store).lost_origins == 1 and ledger(store).origins == 4


def test_what_a_changed_document_had_absorbed_stands_for_itself_again(tmp_path):
    same = Verdict((Check("k", 0.99, "rule", True),))
    run = trained(tmp_path, Edit("x", "The Kestrel is red, Ruth."), Edit("p", "The Kestrel is red."), verdict=same)
    assert StoreFolder(run).store()["k"].absorbed == ("x", "p")
    done = reimport(run, NEW)
    store = StoreFolder(run).store()
    assert done.restored == 1 and store["x"] == Record("x", "Ruth is here.", origin="x")
    assert store["k"].absorbed == () and "p" not in store
    assert (ledger(store).origins, ledger(store).lost_origins, ledger(store).duplicated_origins) == (4, 0, 0)


def test_an_absorbed_document_that_changed_leaves_its_survivor(tmp_path):
    run = trained(tmp_path, Edit("k", "Ruth is here."))
    assert StoreFolder(run).store()["x"].absorbed == ("k",)
    reimport(run, NEW)
    store = StoreFolder(run).store()
    assert store["x"].absorbed == () and store["k"].text == "The Kestrel is blue."


def test_affected_indexes_are_authored_only():
    store = Store(
        [Record("k", "K."), Record("b", "B.", ("k",), origin="b"), Record("n1", "Index", ("k", "b"), flag="authored")]
    )
    changed = Changes(edited=(doc("k", "L."),), removed=("b",))
    assert [(a.id, a.edited, a.removed) for a in affected_indexes(store, changed)] == [("n1", ("k",), ("b",))]


def test_a_store_without_a_trace_gets_one(tmp_path):
    OLD.save(tmp_path / "w")
    assert reimport(tmp_path / "w", NEW).iteration == 1
    assert StoreFolder(tmp_path / "w").store()["k"].text == "The Kestrel is blue."


def test_a_store_of_another_corpus_is_refused(tmp_path):
    run = trained(tmp_path, Add("Boats by colour"))
    before = (run / "trace.jsonl").read_bytes()
    with pytest.raises(BadInput, match="no document in common"):
        reimport(run, World((doc("other", "Nell is here."),)))
    assert (run / "trace.jsonl").read_bytes() == before


def test_an_import_that_does_not_fit_is_damage():
    store = Store([Record("k", "K.", origin="k")])
    genesis = Genesis(SCHEMA, 1, store.fingerprint)
    for event in (Imported(1, added=(doc("k", "Again."),)), Imported(1, edited=(doc("gone", "Text."),))):
        with pytest.raises(Damaged, match="trace line 2"):
            replay(store.copy, [genesis, event])


def test_a_frozen_store_follows_nothing():
    store = Store([Record("k", "K.", origin="k")]).freeze()
    with pytest.raises(Refused, match="frozen"):
        store.apply_import([], [("k", "L.")], [], [])


def test_changes_of_nothing_are_false():
    assert not changes(OLD.documents, OLD.documents) and changes(OLD.documents, NEW.documents)
