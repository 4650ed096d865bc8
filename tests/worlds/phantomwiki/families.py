"""Random families in PhantomWiki's output format, with answers found by its rules instead of by walks.

People are generated from parents and genders alone; every relation is defined here the way the package's Prolog rules
define it, over those two and friendship. Nothing of kbgym is used, so agreeing with it means something.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

STATED = ("sister", "brother", "mother", "father", "son", "daughter", "wife", "husband", "friend")
ATTRIBUTES = {"dob": "date of birth", "job": "occupation", "hobby": "hobby"}
WORDS = {**ATTRIBUTES, "gender": "gender"}
FIRST = (
    "Ada Ben Cal Dot Eli Fay Gil Hal Ida Jon Kit Lou Mae Ned Ora Pip Quin Rex Sue Tad Una Vic Wyn Xan Yul Zoe".split()
)
LAST = "Amory Birch Coyle Drew Esmond Flint Gorse Hythe Ivor Jessop".split()
JOBS = ("tide warden", "bell founder", "map seller", "lamp fitter", "salt boiler")
HOBBIES = ("kite flying", "moss gathering", "chess", "lace making")


class Families:
    def __init__(self, seed: int, founders: int = 4, generations: int = 4) -> None:
        random = Random(f"families:{seed}")
        names = [f"{first} {last}" for first, last in product(FIRST, LAST)]
        random.shuffle(names)
        self.gender: dict[str, str] = {}
        self.parents: dict[str, list[str]] = {}

        def born(gender: str, parents: list[str]) -> str:
            name = names.pop()
            self.gender[name] = gender
            self.parents[name] = parents
            return name

        couples = [(born("female", []), born("male", [])) for _ in range(founders)]
        for _ in range(generations - 1):
            children = [
                born(random.choice(["female", "male"]), list(couple))
                for couple in couples
                for _ in range(random.randint(0, 3))
            ]
            couples = []
            for child in children:
                if random.random() < 0.7:
                    other = born("male" if self.gender[child] == "female" else "female", [])
                    couples.append((child, other) if self.gender[child] == "female" else (other, child))
        self.people = sorted(self.gender)
        self._tables: dict[str, dict[str, set[str]]] = {}
        for rule in ("children", "siblings", "spouses", "grandparents", "great_grandparents", "cousins"):
            setattr(self, rule, cache(getattr(self, rule)))
        self.friends = {
            frozenset(random.sample(self.people, 2)) for _ in range(len(self.people)) if len(self.people) > 1
        }
        self.attributes = {
            (name, kind): value
            for name in self.people
            for kind, value in (
                ("dob", f"0{random.randint(100, 399)}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}"),
                ("job", random.choice(JOBS)),
                ("hobby", random.choice(HOBBIES)),
                ("gender", self.gender[name]),
            )
        }

    # -- the rules ----------------------------------------------------------------------------------------------------

    def children(self, one: str) -> set[str]:
        return {child for child in self.people if one in self.parents[child]}

    def siblings(self, one: str) -> set[str]:
        return {o for o in self.people if o != one and set(self.parents[o]) & set(self.parents[one])}

    def spouses(self, one: str) -> set[str]:
        return {parent for child in self.children(one) for parent in self.parents[child]} - {one}

    def grandparents(self, one: str) -> set[str]:
        return {old for parent in self.parents[one] for old in self.parents[parent]}

    def great_grandparents(self, one: str) -> set[str]:
        return {old for parent in self.grandparents(one) for old in self.parents[parent]}

    def cousins(self, one: str) -> set[str]:
        """Return the children of the siblings of one's parents."""
        pairs = {(mine, other) for mine in self.parents[one] for other in self.siblings(mine)}
        return {o for o in self.people if o != one and any(parent in self.parents[o] for _, parent in pairs)}

    def related(self, relation: str, one: str) -> set[str]:
        """Everybody who is `relation` of one."""
        if one not in self._tables:
            self._tables[one] = self._table(one)
        return self._tables[one][relation]

    def _table(self, one: str) -> dict[str, set[str]]:
        """Every relation of one, by definitions that look from whichever end is simplest."""

        def of(gender: str, people: set[str]) -> set[str]:
            return {person for person in people if self.gender[person] == gender}

        def each(people: set[str] | list[str], follow) -> set[str]:
            return set().union(*(follow(person) for person in people)) if people else set()

        parents = set(self.parents[one])
        young = {o for o in self.people if one in self.grandparents(o)}
        youngest = {o for o in self.people if one in self.great_grandparents(o)}
        in_law = {
            name: of(gender, each(self.spouses(one), follow))
            for name, gender, follow in (
                ("mother_in_law", "female", lambda s: set(self.parents[s])),
                ("father_in_law", "male", lambda s: set(self.parents[s])),
                ("sister_in_law", "female", self.siblings),
                ("brother_in_law", "male", self.siblings),
            )
        }
        removed = {o for o in self.people if set(self.parents[o]) & self.cousins(one)}
        second = {o for o in self.people if any(set(self.parents[o]) & self.cousins(p) for p in parents)} - {one}
        return {
            "parent": parents,
            "mother": of("female", parents),
            "father": of("male", parents),
            "child": self.children(one),
            "son": of("male", self.children(one)),
            "daughter": of("female", self.children(one)),
            "sibling": self.siblings(one),
            "sister": of("female", self.siblings(one)),
            "brother": of("male", self.siblings(one)),
            "wife": of("female", self.spouses(one)),
            "husband": of("male", self.spouses(one)),
            "friend": {o for pair in self.friends if one in pair for o in pair if o != one},
            "niece": of("female", each(self.siblings(one), self.children)),
            "nephew": of("male", each(self.siblings(one), self.children)),
            "aunt": of("female", each(parents, self.siblings)),
            "uncle": of("male", each(parents, self.siblings)),
            "grandparent": self.grandparents(one),
            "grandmother": of("female", self.grandparents(one)),
            "grandfather": of("male", self.grandparents(one)),
            "grandchild": young,
            "granddaughter": of("female", young),
            "grandson": of("male", young),
            "great_grandparent": self.great_grandparents(one),
            "great_grandmother": of("female", self.great_grandparents(one)),
            "great_grandfather": of("male", self.great_grandparents(one)),
            "great_grandchild": youngest,
            "great_granddaughter": of("female", youngest),
            "great_grandson": of("male", youngest),
            "great_aunt": of("female", each(self.grandparents(one), self.siblings)),
            "great_uncle": of("male", each(self.grandparents(one), self.siblings)),
            "second_aunt": of("female", each(self.great_grandparents(one), self.siblings)),
            "second_uncle": of("male", each(self.great_grandparents(one), self.siblings)),
            "cousin": self.cousins(one),
            "female_cousin": of("female", self.cousins(one)),
            "male_cousin": of("male", self.cousins(one)),
            "female_first_cousin_once_removed": of("female", removed) - {one},
            "male_first_cousin_once_removed": of("male", removed) - {one},
            "female_second_cousin": of("female", second),
            "male_second_cousin": of("male", second),
            **in_law,
            "daughter_in_law": of("female", each(self.children(one), self.spouses)),
            "son_in_law": of("male", each(self.children(one), self.spouses)),
        }

    # -- the files ----------------------------------------------------------------------------------------------------

    def article(self, name: str) -> dict[str, object]:
        """A page in the package's format: a sentence a kind, a fact a person named."""
        lines, facts = [f"# {name}", "", "## Family"], []
        for kind in STATED:
            others = sorted(self.related(kind, name))
            if others:
                lines += ["", "## Friends"] if kind == "friend" else []
                plural = {"wife": "wives"}.get(kind, kind + "s")
                lines.append(f"The {plural} of {name} are {', '.join(others)}." if others[1:] else "")
                lines[-1] = lines[-1] or f"The {kind} of {name} is {others[0]}."
                facts += [f'{kind}("{name}", "{other}").' for other in others]
        lines += ["", "## Attributes"]
        for kind, word in WORDS.items():
            lines.append(f"The {word} of {name} is {self.attributes[name, kind]}.")
            facts.append(f'{kind}("{name}", "{self.attributes[name, kind]}").')
        return {"title": name, "article": "\n".join(lines) + "\n", "facts": facts}

    def questions(self, per_type: int, seed: int = 0) -> list[dict[str, object]]:
        """`per_type` questions of each type that have an answer, with stated relations and some derived ones."""
        random = Random(f"questions:{seed}")
        relations = {"friend": "friends", "child": "children", "sister": "sisters", "aunt": "aunts"}
        relations |= {"grandson": "grandsons", "mother": "mothers", "brother": "brothers", "cousin": "cousins"}
        asked: list[dict[str, object]] = []
        for type in range(8):
            count = 0
            while count < per_type:
                person = random.choice(self.people)
                attribute, wanted = random.choice(list(ATTRIBUTES)), random.choice(list(ATTRIBUTES))
                relation, counted = random.choice(list(relations)), random.choice(list(relations))
                value = self.attributes[person, attribute]
                start = [person] if type in (1, 3, 5, 7) else self.holders(attribute, value)
                whom = person if type in (1, 3, 5, 7) else f"the person whose {ATTRIBUTES[attribute]} is {value}"
                reached = set().union(*(self.related(relation, one) for one in start))
                if type in (0, 1):
                    text, answers = f"Who is the {relation} of {whom}?", reached
                elif type == 2:
                    text, answers = f"Who is {whom}?", set(start)
                elif type == 3:
                    text = f"What is the {ATTRIBUTES[wanted]} of the {relation} of {whom}?"
                    answers = {self.attributes[one, wanted] for one in reached}
                elif type == 4:
                    text = f"What is the {ATTRIBUTES[wanted]} of {whom}?"
                    answers = {self.attributes[one, wanted] for one in start}
                else:
                    inner = reached if type == 5 else set(start)
                    whom = f"the {relation} of {whom}" if type == 5 else whom
                    text = f"How many {relations[counted]} does {whom} have?"
                    answers = {str(len(self.related(counted, one))) for one in inner}
                    answers = answers if answers - {"0"} else set()
                if answers:
                    asked.append(
                        {"id": f"{random.random()}", "question": text, "answer": sorted(answers), "type": type}
                    )
                    count += 1
        return asked

    def holders(self, attribute: str, value: str) -> list[str]:
        return [one for one in self.people if self.attributes[one, attribute] == value]

    def write(self, folder: Path, per_type: int = 12, seed: int = 0) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        articles = [self.article(name) for name in self.people]
        (folder / "articles.json").write_text(json.dumps(articles), encoding="utf-8")
        (folder / "questions.json").write_text(json.dumps(self.questions(per_type, seed)), encoding="utf-8")
        return folder
