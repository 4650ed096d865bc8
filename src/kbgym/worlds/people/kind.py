"""What a people world, generated or the paper's own, can say of itself."""

from __future__ import annotations

from kbgym.worlds.people import pool
from kbgym.worlds.people.oracle import indexes
from kbgym.worlds.people.templates import EASY, HARD
from kbgym.worlds.people.truth import PeopleTruth
from kbgym.worlds.world import Description, Question, SentenceForm, World

_ABOUT = (
    "Each document is one sentence that states one fact about a fictional person: a job, a hobby, the city of "
    "residence, the date of birth, or a relation to one other person. A relation is told twice, once from each end. "
    "Only marriage, friendship, and parent and child are stated; siblings, grandparents, in-laws and so on follow from "
    "these."
)
_FORMS = {
    "job": "NAME's job is JOB.",
    "hobby": "NAME's hobby is HOBBY.",
    "city": "NAME lives in the city of CITY.",
    "birth": "NAME was born on MONTH DAY, YEAR.",
    "spouse": "NAME is married to NAME.",
    "child-of": "NAME is a child of NAME.",
    "parent-of": "NAME is the mother/father of NAME.",
    "friend": "NAME is a friend of NAME.",
}
_KEYS = (
    "a person, by full name",
    "a job",
    "a hobby",
    "a city people live in",
    "those in one relation to a person, such as the friends or the grandchildren of NAME",
    "what one asks of those people, such as the cities of everybody with a job",
)


class PeopleKind:
    name = "people"
    title = "People universe"
    search = "vectors"
    has_pools = True
    lists_answers = False

    pool = staticmethod(pool)
    truth = PeopleTruth
    oracle = staticmethod(indexes)

    def difficulty(self, question: Question) -> int:
        return 0 if question.class_ in EASY else 1 if question.class_ in HARD else 2

    def describe(self, world: World) -> Description:
        first = {document.kind: document.text for document in reversed(world.documents)}
        forms = tuple(SentenceForm(form, first[kind]) for kind, form in _FORMS.items() if kind in first)
        return Description(_ABOUT, forms, _KEYS)
