"""What the reference reader's answer rests on, in words: for teaching a model to work an answer out before it gives it.

    "Anna Berg no, Jon Lid 1, Kai Moe 2"    who was looked at, and those who count, numbered
    "Anna Berg 1971-03-02; Jon Lid ..."    who is compared, and by what

It is empty where the answer is read off one sentence.
"""

from __future__ import annotations

from kbgym.agents.reference.memory import Memory
from kbgym.agents.reference.questions import Both, CountEach, Oldest, People, Related, parse_question


def working(question: str, memory: Memory) -> str:
    """How the answer to a question follows from what was gathered."""
    query = parse_question(question)
    if query is None:
        return ""
    steps = _people(query.of, memory)
    if isinstance(query, CountEach):
        counted = [name for one in memory.solve(query.of) for name in memory.related(query.relation, one)]
        steps.append(_numbered(dict.fromkeys(counted), counted))
    return "; ".join(filter(None, steps))


def _people(people: People, memory: Memory) -> list[str]:
    match people:
        case Both(one, _):
            return [*_people(one, memory), _numbered(memory.solve(one), memory.solve(people))]
        case Oldest(of):
            dated = [f"{name} {born}" for name in memory.solve(of) for born in memory.related("born", name)[:1]]
            return [*_people(of, memory), *dated]
        case Related(_, of):
            return _people(of, memory)
    return []


def _numbered(looked_at: list[str] | dict[str, None], counted: list[str]) -> str:
    numbers = {name: str(number) for number, name in enumerate((name for name in looked_at if name in counted), 1)}
    return ", ".join(f"{name} {numbers.get(name, 'no')}" for name in looked_at)
