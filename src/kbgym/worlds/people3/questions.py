"""Questions of a v3 world, drawn so that no gold is frequent and a share of each class is unanswerable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from random import Random

import msgspec

from kbgym.chronicle.asking import ask
from kbgym.chronicle.questions import QuestionTemplate, Slots, Solution, answer, templates
from kbgym.chronicle.timeline import ATTRIBUTES, SOURCES, Timeline
from kbgym.errors import BadInput
from kbgym.worlds.splits import Sizes, interleave, shares
from kbgym.worlds.world import Key, Question

DEFAULT_SIZES = Sizes(train=156, test_in=104, test_out=65, eval_in=26, eval_out=13)
MOST_OF_ONE_GOLD = 5  # at most one question in five of a template has the same gold
LISTS = ("list", "friends-of", "join", "friends")  # asks whose golds are names
_UNANSWERABLE = 125  # per thousand
_LAST_DAY = "2027-12-31"

Instance = tuple[QuestionTemplate, Slots, Solution]


class QuestionSampler:
    """The instances of every template in a world."""

    def __init__(
        self, timeline: Timeline, asked: Sequence[str], unused: Mapping[str, Sequence[str]], depth: int, sources: int
    ) -> None:
        self.timeline = timeline
        self.templates = {
            name: template for name, template in templates(depth).items() if sources > 1 or template.ask != "source"
        }
        self._asked, self._unused, self._sources = asked, unused, SOURCES[:sources]
        self._used = {kind: dict.fromkeys(self._value(kind, person) for person in asked) for kind in ATTRIBUTES}

    def _value(self, kind: str, person: str) -> str:
        last = self.timeline.current(kind, person)
        return last.value if last else self._unused[kind][0]

    def instances(self, template: QuestionTemplate, seed: str) -> Iterator[Instance]:
        """Yield every valid instance, in random order."""
        seen: set[Slots] = set()
        for slots in self._candidates(template, Random(f"{seed}:{template.name}")):
            if slots not in seen and (solution := answer(self.timeline, template, slots)) is not None:
                seen.add(slots)
                yield template, slots, solution

    def _candidates(self, template: QuestionTemplate, rng: Random) -> Iterator[Slots]:
        people = rng.sample(self._asked, len(self._asked))
        match template.ask:
            case "source":
                yield from ((source, person) for person in people for source in rng.sample(self._sources, 1))
            case "as-of":
                yield from ((person, day) for person in people for day in self._days(template.kind, person, rng))
            case "count" | "list" | "extreme":
                values = [*self._used[template.kind], *self._unused[template.kind]]
                yield from ((value,) for value in rng.sample(values, len(values)))
            case "join":
                for person in people:
                    yield self._value(template.kind, person), self._value(template.other, person)
                    yield self._value(template.kind, person), self._value(template.other, rng.choice(people))
            case "friends":
                for person in people:
                    friends = list(self.timeline.friends(person))
                    yield person, self._value(template.kind, rng.choice(friends or people))
                    yield person, self._value(template.kind, rng.choice(people))
            case "compare":
                yield from self._pairs(template.kind, rng)
            case _:
                yield from ((person,) for person in people)

    def _days(self, kind: str, person: str, rng: Random) -> Iterator[str]:
        """Yield a day of each period of an attribute, and one before the first."""
        dates = [report.date for report in self.timeline.history(kind, person)]
        yield date(2010, rng.randint(1, 12), rng.randint(1, 28)).isoformat()
        for start, end in zip(dates, [*dates[1:], _LAST_DAY], strict=True):
            middle = (date.fromisoformat(start).toordinal() + date.fromisoformat(end).toordinal()) // 2
            if start < end:
                yield date.fromordinal(middle).isoformat()

    def _pairs(self, kind: str, rng: Random) -> Iterator[Slots]:
        used, unused = list(self._used[kind]), list(self._unused[kind])
        for _ in range(20 * len(used)):
            one, other = rng.sample(used if rng.random() < 0.8 else unused, 2)
            yield one, other


def draw(asker: QuestionSampler, sizes: Sizes, seed: int) -> list[Question]:
    """Draw the questions of all splits, and the test questions again in held-out wordings."""
    parts = sizes.parts()
    plan = [_plan(asker.templates, reserved, size, turn) for turn, (_, reserved, size) in enumerate(parts)]
    wanted: Counter[str] = sum(plan, Counter())
    without = _without_answer(asker.templates, wanted)
    drawn = {name: iter(_drawn(asker, name, wanted[name], without[name], seed)) for name in wanted}
    found: list[Question] = []
    for (split, _, _), counts in zip(parts, plan, strict=True):
        for name in interleave([[name] * count for name, count in counts.items()]):
            found.append(question(*next(drawn[name]), f"q{len(found) + 1:04d}", split, seed))
    return found


def reworded(found: Sequence[Question], kinds: Mapping[str, QuestionTemplate], seed: int) -> Iterator[Question]:
    """Yield questions in held-out wordings."""
    for one in found:
        text = ask(kinds[one.template], slots_of(one), "held_out", Random(f"{seed}:reworded:{one.id}"))
        yield msgspec.structs.replace(one, id=f"{one.id}-reworded", split=f"{one.split}-reworded", text=text)


def question(template: QuestionTemplate, slots: Slots, solution: Solution, id: str, split: str, seed: int) -> Question:
    """Return an instance as a question in an open wording."""
    return Question(
        id=id,
        split=split,
        class_=template.class_,
        template=template.name,
        text=ask(template, slots, "open", Random(f"{seed}:wording:{template.name}:{':'.join(slots)}")),
        golds=solution.golds,
        keys=tuple(Key(kind, slot) for kind, slot in zip(template.slots, slots, strict=True)),
        support=tuple(dict.fromkeys(report.document for report in solution.reports)),
        unanswerable=solution.unanswerable,
    )


def slots_of(question: Question) -> Slots:
    return tuple(key.value for key in question.keys)


def _plan(kinds: Mapping[str, QuestionTemplate], reserved: bool, size: int, turn: int) -> Counter[str]:
    """Return the number of questions of each template, as evenly as possible."""
    names = [name for name, template in kinds.items() if template.reserved == reserved]
    return Counter({names[(place + 7 * turn) % len(names)]: 0 for place in range(len(names))}) + Counter(
        names[(place + 7 * turn) % len(names)] for place in range(size)
    )


def _without_answer(kinds: Mapping[str, QuestionTemplate], wanted: Mapping[str, int]) -> dict[str, int]:
    """Return the number of unanswerable questions of each template: an eighth of every class."""
    classes: dict[str, list[str]] = {}
    for name in wanted:
        classes.setdefault(kinds[name].class_, []).append(name)
    found: dict[str, int] = {}
    for names in classes.values():
        sizes = [wanted[name] for name in names]
        found.update(zip(names, shares(sizes, (sum(sizes) * _UNANSWERABLE + 500) // 1000), strict=True))
    return found


def _drawn(asker: QuestionSampler, name: str, wanted: int, without: int, seed: int) -> list[Instance]:
    """Return instances of a template, interspersed with unanswerable ones; no gold is frequent."""
    often: Counter[str] = Counter()  # frequency of names in golds of lists, and of words in other golds
    most = max(1, wanted // MOST_OF_ONE_GOLD)
    chosen: list[Instance] = []
    empty: list[Instance] = []
    for instance in asker.instances(asker.templates[name], f"{seed}:v3:questions"):
        solution = instance[2]
        words = [solution.golds[0]] if instance[0].ask in LISTS else solution.golds[0].split()
        if solution.unanswerable:
            empty += [instance] if len(empty) < without else []
        elif len(chosen) < wanted and all(often[word] < most for word in words):
            often.update(words)
            chosen.append(instance)
        if len(empty) == without and len(chosen) >= wanted - without:
            break
    chosen = chosen[: wanted - len(empty)]  # without changes, some templates always have an answer
    if len(chosen) + len(empty) == wanted:
        return list(interleave([part for part in (chosen, empty) if part]))
    raise BadInput(f"this world has too few instances of {name}; use more people or fewer questions.")
