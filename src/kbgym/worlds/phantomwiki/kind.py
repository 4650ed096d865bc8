"""What a PhantomWiki world can say of itself. Which indexes an oracle would build in it is not written down."""

from __future__ import annotations

from kbgym.worlds.phantomwiki.build import pool
from kbgym.worlds.phantomwiki.files import ATTRIBUTES
from kbgym.worlds.phantomwiki.kinship import STATED
from kbgym.worlds.phantomwiki.truth import WikiTruth
from kbgym.worlds.world import Description, Question, SentenceForm, World

_ABOUT = (
    "Each document is one sentence of a fictional person's wiki page: it gives the person's date of birth, occupation, "
    "hobby or gender, or it names everybody in one relation to the person (mother, father, sister, brother, son, "
    "daughter, wife, husband, friend). The same relation is told again on the other person's page. Every other kinship "
    "(aunts, grandparents, cousins, in-laws) follows from these and is stated nowhere."
)
_KEYS = (
    "a person, by full name",
    "an occupation",
    "a hobby",
    "a date of birth",
    "those in one relation to a person, such as the sons or the uncles of NAME",
)


class WikiKind:
    name = "phantomwiki"
    title = "PhantomWiki"
    has_pools = True
    lists_answers = True

    pool = staticmethod(pool)  # all that are no tautologies
    truth = WikiTruth

    def oracle(self, world: World) -> None:
        return None

    def difficulty(self, question: Question) -> int:
        return 0

    def describe(self, world: World) -> Description:
        found: dict[str, str] = {}
        for document in world.documents:
            form = f"The {ATTRIBUTES.get(document.kind, document.kind)} of NAME is VALUE."
            if document.kind in STATED:
                one = len(document.about) == 2
                form = "The RELATION of NAME is NAME." if one else "The RELATIONS of NAME are NAME, NAME."
            found.setdefault(form, _example(form))
        return Description(_ABOUT, tuple(SentenceForm(form, found[form]) for form in sorted(found)), _KEYS)


def _example(form: str) -> str:
    """A sentence of this form that no world holds: one that did would tell a fact nobody has looked for."""
    sentence = form.replace("RELATIONS", "sisters").replace("RELATION", "sister").replace("VALUE", "an example")
    for name in ("Una Sample", "Ida Sample", "Eva Sample"):
        sentence = sentence.replace("NAME", name, 1)
    return sentence
