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
    "these. Who is a man and who a woman is told by being somebody's father or mother, and by nothing else."
)
# With examples that no world holds: one that did would tell a reader a fact it has not looked for.
_FORMS = {
    "job": ("NAME's job is JOB.", "Una Sample's job is tester."),
    "hobby": ("NAME's hobby is HOBBY.", "Una Sample's hobby is making examples."),
    "city": ("NAME lives in the city of CITY.", "Una Sample lives in the city of Elsewhere."),
    "birth": ("NAME was born on MONTH DAY, YEAR.", "Una Sample was born on April 31, 1900."),
    "spouse": ("NAME is married to NAME.", "Una Sample is married to Odo Sample."),
    "child-of": ("NAME is a child of NAME.", "Ida Sample is a child of Una Sample."),
    "parent-of": ("NAME is the mother/father of NAME.", "Una Sample is the mother of Ida Sample."),
    "friend": ("NAME is a friend of NAME.", "Una Sample is a friend of Max Example."),
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
    has_pools = True
    lists_answers = False

    pool = staticmethod(pool)
    truth = PeopleTruth
    oracle = staticmethod(indexes)

    def difficulty(self, question: Question) -> int:
        return 0 if question.class_ in EASY else 1 if question.class_ in HARD else 2

    def describe(self, world: World) -> Description:
        kinds = {document.kind for document in world.documents}
        return Description(_ABOUT, tuple(SentenceForm(*form) for kind, form in _FORMS.items() if kind in kinds), _KEYS)
