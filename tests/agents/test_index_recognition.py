"""One recogniser: agenda, reader and audit take the same sentences for indexes of the same keys, however worded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from turns import note

from kbgym.agents.reference.agenda import ReferenceAgenda
from kbgym.agents.reference.language import is_index, shared_key
from kbgym.analysis.audit import Resolver
from kbgym.gym.actions import Add, Edit, Link, Linked, LinkMany, Merged, Read, Search, Unlink
from kbgym.index_keys import IndexKey, KeyVocabulary, worded_key
from kbgym.index_keys.vocabulary import ANY_KIND, ASKED_BY_WORD, is_relation, telling, words_of
from kbgym.worlds.world import Key as WorldKey

WORDINGS = {
    "job": [
        "People whose job is {}",
        "The job of these people is {}",
        "{}",
        "People who work as a {}",
        "job {}",
        "All documents about people with the occupation {}",
        "Everyone employed as {}",
    ],
    "jobs": ["{}", "All {}", "People who work as {}", "An index of {}"],
    "hobby": ["People whose hobby is {}", "{} enthusiasts", "People who enjoy {}", "hobby {}", "Everybody who does {}"],
    "city": [
        "People who live in the city of {}",
        "Everybody who lives in the city of {}",
        "Residents of {}",
        "{} residents",
        "The inhabitants of the town of {}",
        "{}",
    ],
    "person": ["{}", "About {}", "Everything known about {}", "{}'s profile", "Facts about {}", "Index of {}"],
    "friend": ["Friends of {}", "{}'s friends", "{}’s friends", "People who are friends of {}", "The friends of {}"],
    "child": ["Children of {}", "{}'s kids", "A list of the children of {}"],
    "grandchild": ["Grandchildren of {}", "{}'s grandchildren"],
    "job.city": ["Cities of people whose job is {}", "The cities of everyone with the job {}"],
    "friend.job": ["Jobs of friends of {}", "{}'s friends' jobs", "The jobs of {}'s friends"],
}
AS_THE_WORLD_HAS_IT = {"grandchild": "child.child", "jobs": "job"}
PERSON = ("person", "friend", "child", "grandchild", "friend.job")

word = st.text(st.characters(categories=("Lu", "Ll", "Lo", "Lt")), min_size=3, max_size=9)


def is_plain(value: str) -> bool:
    """Not a word that indexes are made of."""
    words = words_of(value)
    index_words = ANY_KIND | set(ASKED_BY_WORD) | {word for word in words if is_relation(word)}
    return bool(words) and frozenset(words) == telling(words) and not set(words) & index_words


values = st.lists(word, min_size=1, max_size=2).map(" ".join).filter(is_plain)
dressed = st.sampled_from([str, str.upper, str.lower, lambda text: f"{text}.", lambda text: f"  {text}:"])


class Vocabularies:
    """The truth of a world that has one value of each kind."""

    def __init__(self, value: str, other: str) -> None:
        self.names: Iterable[str] = (value, other)
        self.values: Mapping[str, Iterable[str]] = {}

    def only(self, kind: str, value: str) -> Vocabularies:
        self.names, self.values = (), {kind: (value,)}
        return self


def shown(agenda: ReferenceAgenda, *lines: str) -> None:
    note(agenda, Search("x"), "\n".join(f"[d{number}] {line}" for number, line in enumerate(lines)))


def knowing(kind: str, value: str) -> tuple[ReferenceAgenda, Resolver]:
    """An agenda and an audit that know the value, the one from documents, the other from a world."""
    agenda = ReferenceAgenda()
    base = "person" if kind in PERSON else kind.partition(".")[0].removesuffix("s")
    truth = Vocabularies(value, "Zzz Qqq")
    if base == "person":
        shown(agenda, f"{value} is a friend of Zzz Qqq.")
    else:
        form = {"job": "{}'s job is {}.", "hobby": "{}'s hobby is {}.", "city": "{} lives in the city of {}."}[base]
        shown(agenda, form.format("Zzz Qqq", value))
        truth = truth.only(base, value)
    return agenda, Resolver(truth)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.data(), values, dressed)
def test_agenda_reader_and_audit_agree_on_every_wording(data, value, dress):
    kind = data.draw(st.sampled_from(sorted(WORDINGS)))
    wording = data.draw(st.sampled_from(WORDINGS[kind]))
    text = dress(wording.format(f"{value}s" if kind == "jobs" else value))
    assume(not value.casefold().endswith(("s", "x", "ch", "sh", "y", "man")))  # other plurals
    assume(words_of(value.upper()) == words_of(value) == words_of(value.lower()))  # ı loses what sets it apart from i
    base, _, then = ("job" if kind == "jobs" else kind).partition(".")
    key = IndexKey(base, value, then)
    agenda, resolver = knowing(kind, value)
    note(agenda, Add(text), f"Added.\n[n1] {text}")
    assert agenda.indexes.of == {key: "n1"}
    assert is_index(text, key)
    assert resolver.key(text) == WorldKey(AS_THE_WORLD_HAS_IT.get(kind, kind), value)


@settings(max_examples=200, deadline=None)
@given(st.data(), values, values, dressed)
def test_what_says_more_than_its_key_is_nobodys_index(data, value, stranger, dress):
    kind = data.draw(st.sampled_from(sorted(WORDINGS)))
    wording = data.draw(st.sampled_from(WORDINGS[kind]))
    assume(not {*words_of(stranger), *words_of(f"{stranger}s")} & {*words_of(value), *words_of(f"{value}s")})
    assume(len(words_of(f"{value} {stranger}")) == len(words_of(value)) + len(words_of(stranger)))
    text = dress(wording.format(f"{value} {stranger}"))
    base, _, then = ("job" if kind == "jobs" else kind).partition(".")
    agenda, resolver = knowing(kind, value)
    note(agenda, Add(text), f"Added.\n[n1] {text}")
    assert IndexKey(base, value, then) not in agenda.indexes.of and not is_index(text, IndexKey(base, value, then))
    assert resolver.key(text) is None
    # Without knowing the value, only a usual wording names one, and never a bare name.
    assert agenda.indexes.of == ({found: "n1"} if (found := worded_key(text)) else {})
    assert not any(found.kind == "person" for found in agenda.indexes.of)


def test_two_letters_for_one_and_letters_typed_in_two_ways_are_the_same_name():
    for written, typed in (("Éloïse Noël", "E\u0301loi\u0308se Noe\u0308l"), ("İpek Straße", "I\u0307PEK STRASSE")):
        agenda, resolver = knowing("person", written)
        note(agenda, Add(f"About {typed}."), f"Added.\n[n1] About {typed}.")
        assert agenda.indexes.of == {IndexKey("person", written): "n1"}
        assert resolver.key(f"About {typed}.") == WorldKey("person", written)


# -- by what it links -------------------------------------------------------------------------------------------------

JOBS = ["Ann Bell's job is tanner.", "Cy Dow's job is tanner.", "Eve Fox's job is smith."]
FRIENDS = ["Ann Bell is a friend of Cy Dow.", "Ann Bell is a friend of Eve Fox."]


@pytest.mark.parametrize(
    ("texts", "key"),
    [
        (JOBS, IndexKey("job", "tanner")),
        (JOBS[1:], None),
        (FRIENDS, IndexKey("friend", "Ann Bell")),
        ([*FRIENDS, "Ann Bell was born on 1920-01-02."], IndexKey("person", "Ann Bell")),
        (["Ann Bell is the mother of Cy Dow.", "Ann Bell is the mother of Eve Fox."], IndexKey("child", "Ann Bell")),
        (JOBS[:1], None),
        (["No fact.", "Nor this."], None),
    ],
)
def test_documents_share_the_key_most_of_them_state(texts, key):
    assert shared_key(texts) == key


def test_an_index_in_words_nobody_knows_is_known_by_what_it_links():
    agenda = ReferenceAgenda()
    shown(agenda, *JOBS)
    text = "Whoever turns hides into leather"
    note(agenda, Add(text), f"Added.\n[n1] {text}")
    assert agenda.indexes.of == {}, "unknown wording is nobody"
    note(agenda, Link("n1", "d0"), "Linked [n1] to 1 document.")
    agenda.note_turn(LinkMany("n1", ("d1", "d9")), Linked("n1", ("d1",), unknown=("d9",)), {}.__getitem__)
    assert agenda.indexes.of == {IndexKey("job", "tanner"): "n1"}
    assert list(agenda.indexes.links(IndexKey("job", "tanner"))) == ["d0", "d1"]
    resolver = Resolver(Vocabularies("", "").only("job", "tanner"))  # type: ignore[arg-type]
    assert resolver.key(text) is None and resolver.key(text, JOBS) == WorldKey("job", "tanner")
    assert resolver.key("Residents of Lund", JOBS) is None, "its words name another key"
    note(agenda, Unlink("n1", "d0"), "Unlinked [n1] from [d0].")
    assert list(agenda.indexes.links(IndexKey("job", "tanner"))) == ["d1"]


def test_an_index_that_was_edited_merged_or_only_read_is_kept_in_step():
    agenda = ReferenceAgenda()
    shown(agenda, *JOBS, *FRIENDS)
    note(agenda, Add("Tanners."), "Added.\n[n1] Tanners.")
    note(agenda, Add("Smiths."), "Added.\n[n2] Smiths.")
    note(agenda, Edit("n2", "About Ann Bell"), "Edited.\n[n2] About Ann Bell")
    assert agenda.indexes.of == {IndexKey("job", "tanner"): "n1", IndexKey("person", "Ann Bell"): "n2"}
    note(agenda, LinkMany("n2", ("d3",)), "Linked [n2] to 1 document.")
    agenda.note_turn(Edit("n2", "All tanners"), Merged("n1", gone="n2"), {"n1": ("Tanners.", ())}.__getitem__)
    assert agenda.indexes.of == {IndexKey("job", "tanner"): "n1"}
    assert list(agenda.indexes.links(IndexKey("job", "tanner"))) == ["d3"]
    note(agenda, Read("h7"), "[h7] Friends of Ann Bell\nIt links to 1:\n[d3] " + FRIENDS[0])
    assert list(agenda.indexes.links(IndexKey("friend", "Ann Bell"))) == ["d3"]


def test_a_relation_and_both_its_halves_are_one_relation():
    vocabulary = KeyVocabulary()
    vocabulary.know("person", "Ann Bell")
    assert vocabulary.key("Siblings of Ann Bell: brothers, sisters") == IndexKey("sibling", "Ann Bell")
    assert vocabulary.key("Siblings of Ann Bell's brother") == IndexKey("brother.sibling", "Ann Bell")
