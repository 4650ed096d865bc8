"""The words the reference agents search with: those a document or an index about the key would use.

Chosen by measurement on the paper's universe (share of members found by paging until a page brings none): a job 0.999,
a hobby 0.999, a city 0.966 (0.911 for "Residents of ..."), friends 0.997 (0.980 for "X is a friend of"), children 0.97
(0.53 for "Children of X"), all that a person's own documents say 0.96 and, paging on while the person is named at all,
0.98.
"""

from __future__ import annotations

from kbgym.agents.reference.language import ATTRIBUTES, index_text
from kbgym.index_keys import IndexKey

# A document's words, not an index's: searching for "People whose job is smith" puts the indexes of other jobs above
# the smiths (1.9 of them above the best smith in a fully indexed store); "job is smith" puts none there.
_ATTRIBUTE_QUERIES = {
    "job": "job is {}",
    "hobby": "hobby is {}",
    "city": "lives in the city of {}",
    "born": "was born on {}",
}
_PERSON_QUERIES = {
    "job": "{}'s job is",
    "hobby": "{}'s hobby is",
    "city": "{} lives in the city of",
    "born": "{} was born on",
    "child": "{} mother or father of",
    "spouse": "{} is married to",
    "parent": "{} is a child of",
    "gender": "{} is the father of",
}


# The same for stores whose sentences list ("The sons of X are A, B."). On PhantomWiki one page brings all the lists
# there are for 89% of people's parents (57% with "X is a child of"), 94% of children (58% with "X mother or father
# of"), 92% of siblings (76% with "Siblings of X"), 94 to 100% of single relations with the words of an index.
_LISTING_QUERIES = {
    "job": "The occupation of {} is",
    "hobby": "The hobby of {} is",
    "born": "The date of birth of {} is",
    "gender": "The gender of {} is",
    "parent": "The mother of {0} is. The father of {0} is.",
    "child": "Daughters and sons of {}",
    "sibling": "The sisters and brothers of {} are",
    "spouse": "The wife or husband of {} is",
}


def query_for(key: IndexKey) -> str:
    """What to search for to find an index, or else its members."""
    return _ATTRIBUTE_QUERIES.get(key.kind, index_text(IndexKey(key.kind, "{}"))).format(key.value)


def queries_about(relation: str, person: str) -> list[str]:
    """What to search for to learn one relation of one person, the next when the one before brought nothing."""
    plain = index_text(IndexKey(relation, "{}"))
    wordings = dict.fromkeys([_PERSON_QUERIES.get(relation, plain)] + ([] if relation in ATTRIBUTES else [plain]))
    return [wording.format(person) for wording in wordings]


def query_about(relation: str, person: str) -> str:
    return queries_about(relation, person)[0]


def listing_query(relation: str, person: str) -> str:
    """The same for a store that lists, where one page must do."""
    return _LISTING_QUERIES.get(relation, index_text(IndexKey(relation, "{}"))).format(person)
