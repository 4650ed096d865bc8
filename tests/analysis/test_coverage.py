"""Coverage in its four readings, on a store small enough to count by hand."""

import pytest

from kbgym.analysis.health import coverage
from kbgym.store import Record, Store, source
from kbgym.worlds.world import Question


def store(**links: str) -> Store:
    """Ten originals d0 to d9, and authored documents by name with the links given."""
    originals = [source(f"d{number}", f"Sentence {number}.") for number in range(10)]
    return Store([*originals, *(Record(id, id, tuple(to.split()), flag="authored") for id, to in links.items())])


def question(*support: str) -> Question:
    return Question("q" + "".join(support), "train", "QC1", "job-of", "?", ("x",), support=support)


def test_a_flat_store_covers_nothing():
    share = coverage(store(), lambda index, target: True, [question("d1")])
    assert (share.direct, share.two_hops, share.confirmed, share.questions) == (0, 0, 0, 0)


def test_an_original_counts_once_however_many_indexes_point_at_it():
    assert coverage(store(a="d1 d2", b="d2 d3")).direct == pytest.approx(0.3)


def test_what_is_two_hops_from_one_index_is_one_hop_from_another():
    """An authored document with links is an index whatever links to it, so both definitions agree inside the layer."""
    share = coverage(store(a="b d1", b="d2 c", c="d3"))
    assert share.direct == share.two_hops == pytest.approx(0.3)


def test_a_source_document_that_links_on_is_no_index():
    linked = store(a="d1")
    linked.link("d1", ("d2",))
    assert coverage(linked).direct == pytest.approx(0.1)


def test_links_between_originals_are_no_coverage():
    linked = store()
    linked.link("d1", ("d2", "d3"))
    assert coverage(linked).direct == 0


def test_only_links_called_correct_are_confirmed():
    share = coverage(store(a="d1 d2 d3"), lambda index, target: (index.id, target) != ("a", "d2"))
    assert (share.direct, share.confirmed) == (pytest.approx(0.3), pytest.approx(0.2))
    assert coverage(store(a="d1")).confirmed is None


def test_questions_need_their_whole_support_under_one_index():
    asked = [question("d1", "d2"), question("d2", "d3"), question("d9"), question()]
    assert coverage(store(a="d1 d2", b="d3"), questions=asked).questions == pytest.approx(1 / 3)
    assert coverage(store(a="d1"), questions=[question()]).questions is None


def test_a_merge_keeps_what_it_absorbed_covered():
    merged = store(a="d1 d2")
    merged.merge("d1", "d2")
    assert coverage(merged).direct == pytest.approx(0.2)


def test_a_lost_original_stays_in_the_denominator():
    lost = store(a="d1 d2")
    lost.delete("d2")
    assert coverage(lost).direct == pytest.approx(0.1)
