"""A second way to every answer: read only the documents' sentences, rebuild the relations, answer the question's text.

Shares no code with the package, so that a gold both agree on is not one mistake made twice. A question whose answer
cannot be derived from the sentences at hand is answered None.
"""

import datetime
import re
from collections import defaultdict

UNKNOWN = "unknown"
SINGLE = {"job", "hobby", "city", "born", "spouse", "mother", "father"}

SYMMETRIC = {"common-friend", "older-of-two"}  # swapping the two people does not change the question


def instance(template, values):
    """The keys of a question, without their order where it does not matter."""
    return frozenset(values) if template in SYMMETRIC else tuple(values)


class SentenceReader:
    def __init__(self, texts):
        self.one = {field: {} for field in SINGLE}
        self.children = defaultdict(list)
        self.friends = defaultdict(list)
        self.child_of = defaultdict(list)
        for text in texts:
            self._take(text)
        self.with_value = defaultdict(lambda: defaultdict(set))
        for field in ("job", "hobby", "city"):
            for name, value in self.one[field].items():
                self.with_value[field][value].add(name)

    def _take(self, text):
        words = text.removesuffix(".").split(" ")
        name = " ".join(words[:2])
        rest = " ".join(words[2:])
        if name.endswith("'s"):
            name = name[:-2]
            field, value = rest.split(" is ", 1)
            self._set(field, name, value)
        elif rest.startswith("lives in the city of "):
            self._set("city", name, words[-1])
        elif rest.startswith("was born on "):
            day = datetime.datetime.strptime(rest.removeprefix("was born on "), "%B %d, %Y")
            self._set("born", name, day.date())
        elif rest.startswith("is married to "):
            self._set("spouse", name, " ".join(words[-2:]))
        elif rest.startswith("is a friend of "):
            self.friends[name].append(" ".join(words[-2:]))
        elif rest.startswith("is a child of "):
            self.child_of[name].append(" ".join(words[-2:]))
        elif rest.startswith(("is the mother of ", "is the father of ")):
            child = " ".join(words[-2:])
            self._set(words[4], child, name)
            self.children[name].append(child)
        else:
            raise AssertionError(f"not a sentence of the universe: {text}")

    def _set(self, field, name, value):
        assert name not in self.one[field], f"{name} has two {field}"
        self.one[field][name] = value

    def get(self, field, name):
        return self.one[field].get(name)

    def men(self):
        return set(self.one["father"].values())

    def women(self):
        return set(self.one["mother"].values())

    def siblings(self, name):
        parents = [self.get("mother", name), self.get("father", name)]
        return {child for parent in parents if parent for child in self.children[parent]} - {name}

    # -- answering ---------------------------------------------------------------------------------------------------

    def answer(self, text):
        """A string, a number, a frozenset of two names, "unknown", or None."""
        for pattern, rule in RULES:
            if found := re.fullmatch(pattern, text):
                return rule(self, *found.groups())
        raise AssertionError(f"not a question of the universe: {text}")

    def who_is(self, path, name):
        """Resolve 'the father of the spouse of' from the name outwards."""
        for relation in reversed(re.findall(r"the (\w+) of ", path)):
            if name is None:
                return None
            if relation in ("brother", "sister"):
                among = self.men() if relation == "brother" else self.women()
                found = self.siblings(name) & among
                name = found.pop() if len(found) == 1 else None
            else:
                name = self.get(relation, name)
        return name

    def attribute(self, field, path, name):
        person = self.who_is(path, name)
        if person is None and path in ("the brother of ", "the sister of ", "the spouse of "):
            return UNKNOWN
        return self.get(field, person)

    def count(self, what, path, name):
        person = self.who_is(path, name)
        if what == "children":
            return len(self.children[person]) or None
        if what == "grandchildren":
            return sum(len(self.children[child]) for child in self.children[person]) or None
        return len(self.friends[person]) or None

    def join(self, **values):
        return set.intersection(*(self.with_value[field][value] for field, value in values.items()))

    def the(self, found):
        return next(iter(found)) if len(found) == 1 else None

    def common(self, one, other):
        found = frozenset(set(one) & set(other))
        return self.the(found) if len(found) == 1 else found if len(found) == 2 else None

    def friends_with(self, name, job):
        jobs = [self.get("job", friend) for friend in self.friends[name]]
        return None if None in jobs else jobs.count(job) or None

    def older(self, names):
        days = {name: self.get("born", name) for name in names}
        return None if None in days.values() or not days else min(days, key=days.get)

    def spouse_of_job(self, job):
        return self.the({self.get("spouse", holder) for holder in self.with_value["job"][job]} - {None})


PATH = r"((?:the \w+ of )*)"
RULES = [
    (rf"What is the (job|hobby) of {PATH}(.+)\?", lambda r, field, path, name: r.attribute(field, path, name)),
    (rf"In which city does {PATH}(.+) live\?", lambda r, path, name: r.attribute("city", path, name)),
    (
        r"How many friends of (.+) have the job of (.+)\?",
        lambda r, name, job: r.friends_with(name, job),
    ),
    (
        r"How many (grandchildren) does ()(.+) have\?",
        lambda r, what, path, name: r.count(what, path, name),
    ),
    (
        rf"How many (children|friends) does {PATH}(.+) have\?",
        lambda r, what, path, name: r.count(what, path, name),
    ),
    (
        r"Who is the (.+) in the city of (.+) whose hobby is (.+)\?",
        lambda r, job, city, hobby: r.the(r.join(job=job, city=city, hobby=hobby)),
    ),
    (
        r"Who is the (.+) who lives in the city of (.+)\?",
        lambda r, job, city: r.the(r.join(job=job, city=city)),
    ),
    (
        r"Who is the (.+) whose hobby is (.+)\?",
        lambda r, job, hobby: r.the(r.join(job=job, hobby=hobby)),
    ),
    (
        r"Which friend of (.+) is also a friend of (.+)\?",
        lambda r, one, other: r.common(r.friends[one], r.friends[other]),
    ),
    (
        r"Which child of (.+) is a friend of (.+)\?",
        lambda r, parent, other: r.the(set(r.children[parent]) & set(r.friends[other])),
    ),
    (r"Who is older, (.+) or (.+)\?", lambda r, one, other: r.older([one, other])),
    (r"Who is the oldest child of (.+)\?", lambda r, name: r.older(r.children[name])),
    (
        r"Whose spouse is the (.+) who lives in the city of (.+)\?",
        lambda r, job, city: r.get("spouse", r.the(r.join(job=job, city=city))),
    ),
    (r"Whose spouse has the job of (.+)\?", lambda r, job: r.spouse_of_job(job)),
]


NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
)


def as_golds(answer):
    """The golds an answer of the reader stands for, as a set."""
    if isinstance(answer, frozenset):
        one, other = sorted(answer)
        return {f"{one} and {other}", f"{other} and {one}"}
    if isinstance(answer, int):
        return {str(answer), NUMBERS[answer]}
    return {answer}
