"""Queries of the reference agents: their wording, the searches for a key's members, and when a search ends.

Queries use the words of a document or an index about the key, chosen by measurement on the paper's universe (share
of members found by paging until a page brings none): a job 0.999, a hobby 0.999, a city 0.966 (0.911 for "Residents of
..."), friends 0.997 (0.980 for "X is a friend of"), children 0.97 (0.53 for "Children of X").

A page without a member is not always the last one: embedding search may rank members behind it. A person is therefore
queried in several ways instead of by paging through a bare name. On the paper's universe (flat store), one page of each
of the first two queries below holds 96% and 92% of its targets, and the first five pages of the name hold 96% of all.
Of 3,960 documents about friends the third query misses none, because one friend's pages cover the other's gaps.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbgym.agents.reference.language import ATTRIBUTES, WORDS, belongs, concerns, facts, index_text
from kbgym.gym.policy import Lookup
from kbgym.index_keys import IndexKey


def query_for(key: IndexKey) -> str:
    """Return the query that finds an index of a key, or else its members."""
    return str(WORDS["members"].get(key.kind, index_text(IndexKey(key.kind, "{}"))).format(key.value))


def queries_about(relation: str, person: str) -> list[str]:
    """Return the queries for one relation of one person, each for the case that the previous one found nothing."""
    plain = index_text(IndexKey(relation, "{}"))
    wordings = dict.fromkeys([WORDS["about"].get(relation, plain)] + ([] if relation in ATTRIBUTES else [plain]))
    return [wording.format(person) for wording in wordings]


def query_about(relation: str, person: str) -> str:
    return queries_about(relation, person)[0]


def listing_query(relation: str, person: str) -> str:
    """Return the query for one relation of one person in a store that lists, where one page must suffice."""
    return str(WORDS["listing"].get(relation, index_text(IndexKey(relation, "{}"))).format(person))


# -- searches for members ---------------------------------------------------------------------------------------------

_FAMILY = "{} is married to, is a child of, was born on"
_ABOUT_A_PERSON = (
    ("{}'s job, hobby and city", ("job", "hobby", "city"), 1),
    (_FAMILY, ("spouse", "parent", "born"), 1),
    ("Friends of {}", ("friend",), 0),
)
# A search about a person may have ended too early if its last page had this many documents that name the person, or
# was the first and had a member: worth another page once every person has an index. After the first page only if
# relevant facts are known that the search has not shown: over 15 worlds such a page has new members in 21 of 2,337
# cases, but in only 1 of 1,105 cases where the search had shown all known facts.
_NAMED = 3
# Pages of indexes alone say nothing about the members, but their number must be bounded.
_MOST_INDEXES = 3


def searches_for(key: IndexKey, lists: bool) -> list[Lookup]:
    """Return the searches for a key's members; with `lists` one page about a person shows complete lists."""
    if key.kind != "person" or lists:
        return [Lookup(query_for(key))]
    return [Lookup(query.format(key.value), kinds=kinds, most=most) for query, kinds, most in _ABOUT_A_PERSON]


def about_family(person: str) -> str:
    """Return the query that shows a person's spouse, parents and birth."""
    return _FAMILY.format(person)


def members_on(page: Sequence[str], lookup: Lookup, key: IndexKey) -> int:
    """Return the number of documents of a page that the search targets."""
    return sum(belongs(text, key) and (not lookup.kinds or _kind(text) in lookup.kinds) for text in page)


def goes_on(page: Sequence[str], number: int, new: int, lookup: Lookup, key: IndexKey) -> bool:
    """Return True if the page after this one is worth an action; `new` is the number of members not seen before.

    About a person only new members count, because facts about friends come from the friends' own pages.
    """
    if not page or (lookup.most and number >= lookup.most):
        return False
    if not any(map(facts, page)):
        return number < _MOST_INDEXES
    return (new if lookup.kinds else members_on(page, lookup, key)) > 0


def is_doubtful(page: Sequence[str], number: int, lookup: Lookup, key: IndexKey) -> bool:
    """Return True if a search without a fixed end that stopped at this page may have missed something."""
    if lookup.most or not lookup.kinds:
        return False
    named = sum(concerns(text, key) and _kind(text) in lookup.kinds for text in page)
    return named >= _NAMED or (number == 1 and members_on(page, lookup, key) > 0)


def is_found(lookup: Lookup, text: str) -> bool:
    """Return True if this is the document that a search seeks."""
    sentence = text.removesuffix(".")
    return any(sentence == begins or sentence.startswith(begins + " ") for begins in lookup.seeks)


def _kind(text: str) -> str:
    relation = facts(text)[0].relation
    return "child" if relation in ("mother", "father") else relation
