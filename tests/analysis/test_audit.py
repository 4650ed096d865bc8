"""The index audit, a test on each trap: hubs, birth dates under a city, two hops, recited members, indexes below."""

import msgspec
import pytest
from family import documents, family, store_with
from hypothesis import given
from hypothesis import strategies as st

from kbgym.analysis.audit import Auditor
from kbgym.analysis.health import coverage
from kbgym.store import Record, Store
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Key

WORLD = family()
TRUTH = kind_of(WORLD).truth(WORLD)
LUND = ("Ada Alm", "Bo Alm", "Kim Fox", "Ada Bok")


def lives(name: str, city: str = "Lund") -> str:
    return f"{name} lives in the city of {city}"


def own(name: str) -> list[str]:
    return [text for text in documents(WORLD) if text.startswith(name)]


def judged(store: Store, id: str):
    return Auditor(store, TRUTH).index(store[id])


def scores(id: str, **indexes: tuple[str, list[str]]) -> tuple[float, float]:
    index = judged(store_with(WORLD, **indexes), id)
    assert index.shape == "genuine"
    return round(index.precision, 3), round(index.recall, 3)


# -- the taxonomy -----------------------------------------------------------------------------------------------------


def test_the_four_shapes():
    store = store_with(
        WORLD,
        a=("Residents of Lund", [lives("Ada Alm")]),
        b=("Friends of Ada Alm", []),
        c=("Friends of Ada Alm: Ian Ost, Kim Fox", ["Ada Alm is a friend of Ian Ost"]),
        d=("Bakers in Lund", [lives("Ada Alm")]),
        e=("The baker living in Lund is Ada Alm.", []),
    )
    audit = Auditor(store, TRUTH).audit()
    assert [index.shape for index in audit.indexes] == ["genuine", "stub", "materialised", "other", "materialised"]
    assert [audit.count(shape) for shape in ("genuine", "stub", "materialised", "other")] == [1, 1, 2, 1]
    assert [row.group for row in audit.table] == ["city", "all"]


def test_originals_are_never_judged():
    assert Auditor(store_with(WORLD), TRUTH).audit().indexes == ()


# -- links to originals -----------------------------------------------------------------------------------------------


def test_residents_of_another_city_are_wrong_and_the_absent_are_missed():
    index = judged(
        store_with(WORLD, a=("Residents of Lund", [lives("Ada Alm"), lives("Cy Alm", "Oslo"), lives("Bo Alm")])), "a"
    )
    assert index.wrong == (documents(WORLD)[lives("Cy Alm", "Oslo")],)
    assert index.missing == ("Ada Bok", "Kim Fox")
    assert (round(index.precision, 3), index.recall) == (0.667, 0.5)


def test_the_namesakes_documents_do_not_belong_to_a_person():
    hub = judged(store_with(WORLD, a=("Ada Alm", [*own("Ada Alm"), *own("Ada Bok")])), "a")
    assert len(hub.wrong) == 4 and not hub.missing


# -- links through hubs and indexes -----------------------------------------------------------------------------------


HUBS = {f"h{number}": (name, own(name)) for number, name in enumerate(LUND)}
BORN = [text for text in documents(WORLD) if "was born" in text and text.startswith(LUND)]
BOTH_ENDS = ["Ada Alm is a friend of Ian Ost", "Ian Ost is a friend of Ada Alm"]
GRAND = ["Fay Alm is a child of Cy Alm", "Gus Alm is a child of Cy Alm", "Dot Alm is the mother of Hal Ost"]
HALVES = {
    "b": ("Residents of Lund, first half", [lives("Ada Alm"), lives("Bo Alm")]),
    "c": ("Residents of Lund (more)", [lives("Kim Fox"), "h3"]),
}
OF_KIM = ("Friends of Kim Fox", ["Kim Fox is a friend of Ada Alm", "Kim Fox is a friend of Fay Alm"])
REST_OF_KIM = [text for text in own("Kim Fox") if "friend" not in text]
# the index's text, its links, other indexes, precision and recall
SCORED = {
    "a complete city index": ("Residents of Lund", [lives(name) for name in LUND], {}, 1, 1),
    "birth dates under a city": ("Residents of Lund", BORN, {}, 0, 0),
    "a person's own documents": ("Kim Fox", own("Kim Fox"), {}, 1, 1),
    "both ends of a relation": ("Kim Fox", [*own("Kim Fox"), "Ada Alm is a friend of Kim Fox"], {}, 1, 1),
    "the other end alone": ("Kim Fox", ["Ada Alm is a friend of Kim Fox"], {}, 1, 0),
    "a friend told from both ends": ("Friends of Ada Alm", BOTH_ENDS, {}, 1, 0.5),
    "two friends": ("Friends of Ada Alm", [BOTH_ENDS[0], "Kim Fox is a friend of Ada Alm"], {}, 1, 1),
    "a friend's job": ("Friends of Ada Alm", ["Ian Ost's job is ferryman"], {}, 0, 0),
    "two hops": ("Grandchildren of Ada Alm", GRAND, {}, 1, 1),
    "two hops, one of three": ("Grandchildren of Ada Alm", GRAND[:1], {}, 1, 0.333),
    "the step between": ("Grandchildren of Ada Alm", ["Ada Alm is the mother of Cy Alm"], {}, 0, 0),
    "through hubs": ("Residents of Lund", ["h0", "h1", "h2", "h3"], HUBS, 1, 1),
    "somebody else's hub": ("Residents of Lund", ["h0", "h"], {"h": ("Gus Alm", own("Gus Alm")), **HUBS}, 0.5, 0.25),
    "an empty hub": ("Residents of Lund", [lives("Bo Alm"), "h"], {"h": ("Ada Alm", [])}, 0.5, 0.25),
    "an index of indexes": ("Residents of Lund", ["b", "c"], {**HALVES, **HUBS}, 1, 1),
    "an index of other things below": (
        "Residents of Lund",
        ["b", lives("Ada Alm")],
        {"b": ("Bakers", ["Ada Alm's job is baker", "Cy Alm's job is baker"])},
        0.5,
        0.25,
    ),
    "indexes and hubs between": (
        "Grandchildren of Ada Alm",
        ["b", "c"],
        {"b": ("Children of Cy Alm", GRAND[:2]), "c": ("Dot Alm", own("Dot Alm"))},
        1,
        1,
    ),
    "a person's hub over an index": ("Kim Fox", [*REST_OF_KIM, "b"], {"b": OF_KIM}, 1, 1),
    "a person's hub over another's": ("Kim Fox", ["b"], {"b": ("Grandchildren of Ada Alm", GRAND[:1])}, 0, 0),
    "indexes in a circle": ("Friends of Ada Alm", ["b"], {"b": ("Bo Alm", ["a"])}, 0, 0),
}


@pytest.mark.parametrize("name", SCORED)
def test_links_are_scored(name):
    text, links, others, precision, recall = SCORED[name]
    assert scores("a", a=(text, links), **others) == (precision, recall)


def test_an_index_of_joined_attributes_is_scored_by_what_it_asks():
    """An index of the cities of all bakers is scored against the city documents of bakers only."""
    bakers = sorted(TRUTH.members(Key("job", "baker")))
    assert bakers
    cities = [text for name in bakers for text in documents(WORLD) if text.startswith(f"{name} lives in")]
    text = "Cities of people whose job is baker"
    assert scores("a", a=(text, cities)) == (1.0, 1.0)
    stray = next(lives(name) for name in LUND if name not in bakers)
    precision, recall = scores("a", a=(text, [*cities, stray]))
    assert precision < 1 and recall == 1.0
    index = judged(store_with(WORLD, a=(text, cities)), "a")
    assert (index.key, index.group) == (Key("job.city", "baker"), "joined attributes")


def test_a_merged_document_serves_every_fact_it_carries():
    ids = documents(WORLD)
    store = store_with(WORLD)
    keep, gone = ids["Ada Alm is a friend of Ian Ost"], ids["Kim Fox is a friend of Ada Alm"]
    store.merge(keep, gone)
    index = store.add("Friends of Ada Alm")
    store.link(index, (keep,))
    assert judged(store, index).recall == 1.0


# -- rows, and what others plug in ------------------------------------------------------------------------------------


def test_rows_are_pooled_over_links_and_members():
    store = store_with(
        WORLD,
        a=("Residents of Lund", [lives(name) for name in LUND]),
        b=("Residents of Ystad", ["Ada Alm's job is baker"]),
    )
    row = Auditor(store, TRUTH).audit().table[0]
    assert (row.group, row.n, row.degree) == ("city", 2, 2.5)
    assert (row.precision, round(row.recall, 4)) == (0.8, round(4 / 6, 4))


def test_confirmed_coverage_leaves_wrong_links_out():
    store = store_with(WORLD, a=("Residents of Lund", [lives("Ada Alm"), "Ada Alm's job is baker"]))
    share = coverage(store, Auditor(store, TRUTH).correct)
    assert share.direct == pytest.approx(2 / len(WORLD.documents))
    assert share.confirmed == pytest.approx(1 / len(WORLD.documents))


def test_without_a_truth_nothing_is_scored():
    store = store_with(WORLD, a=("Bakers in Lund", [lives("Ada Alm")]), b=("Bakers", []))
    audit = Auditor(store, None).audit()
    assert [index.shape for index in audit.indexes] == ["genuine", "stub"]
    assert audit.table == () and audit.total is None and not audit.resolved


def test_a_key_with_no_member_finds_nothing():
    index = judged(store_with(WORLD, a=("Sisters of Fay Alm", ["Fay Alm is a child of Eve Ek"])), "a")
    assert (index.members, index.precision, index.recall) == (0, 0.0, 0.0)
    assert msgspec.json.encode(index)


def test_an_edited_document_is_judged_by_the_fact_it_carries():
    ids = documents(WORLD)
    store = store_with(WORLD, a=("Residents of Lund", [lives("Ada Alm")]))
    store.edit(ids[lives("Ada Alm")], "Ada Alm lives in beautiful Lund.")
    assert isinstance(store[ids[lives("Ada Alm")]], Record)
    assert judged(store, "a").precision == 1.0


# -- what must always hold --------------------------------------------------------------------------------------------

KEYS = {
    "Residents of Lund": Key("city", "Lund"),
    "Ada Alm": Key("person", "Ada Alm"),
    "Friends of Ada Alm": Key("friend", "Ada Alm"),
    "Grandchildren of Ada Alm": Key("child.child", "Ada Alm"),
}
IDS = st.sampled_from([document.id for document in WORLD.documents])
LINKS = st.lists(IDS, min_size=1, max_size=12, unique=True)


@given(st.sampled_from(list(KEYS)), LINKS)
def test_an_index_of_originals_is_scored_by_plain_counting(text, links):
    key, index = KEYS[text], judged(store_with(WORLD, a=(text, links)), "a")
    assert set(index.wrong) == {id for id in links if not TRUTH.belongs(key, id)}
    served = {member for id in links for member in TRUTH.serves(key, id)}
    assert set(index.missing) == TRUTH.members(key) - served


@given(st.sampled_from(list(KEYS)), LINKS, LINKS, st.sampled_from(list(KEYS)), LINKS)
def test_a_further_link_never_loses_a_member(text, some, more, below, linked):
    def recall(links: list[str]) -> float:
        index = judged(store_with(WORLD, a=(text, links), b=(below, linked), c=("More", ["b", *some])), "a")
        assert 0 <= index.precision <= 1 and 0 <= index.recall <= 1
        return index.recall

    assert recall(["b", *some]) >= recall(some)
    assert recall(list(dict.fromkeys([*some, *more, "c"]))) >= recall(some)
