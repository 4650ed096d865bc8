"""The questions page's data: every question with each arm's score, and the passes of one question.

An exam's pass is rendered from the frozen store it was examined on; a training pass from the replayed store at that
action. Passes are shown as conversations: every action in plain words, every result line by line, with documents kept
apart from the surrounding words, so that the page can link them and mark the evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import msgspec

from kbgym.canonical import encode, read_lines
from kbgym.errors import BadInput
from kbgym.gym import actions
from kbgym.gym.observations import render
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Graded
from kbgym.trace.history import log
from kbgym.training.exam import Row
from kbgym.viewer import group_label, picked
from kbgym.viewer.places import ViewedPlace, ViewedStore, split
from kbgym.worlds.world import Question

TextOf = Callable[[str], str]
Steps = Sequence[tuple[actions.Action, dict[str, Any]]]


def listing(place: ViewedPlace, seed: int) -> dict[str, Any]:
    """Return every examined question with its score on each arm, and the trainings."""
    exams = place.exams(seed)
    own, arms = list(place.arms(seed)), list(dict.fromkeys(arm for arm, _ in exams))
    arms.sort(key=lambda arm: (split(arm)[1] or 0, own.index(split(arm)[0])))  # earlier iterations come last
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for (arm, name), found in exams.items():
        for row in found:
            line = rows.setdefault((name, row.id), _question(row, name))
            line["by"][arm] = [row.f1, row.actions, row.outcome, row.answer, row.characters]
    return {
        "arms": [{"arm": arm, "label": place.label(seed, arm)} for arm in arms],
        "sets": [{"set": name, "label": group_label(name)} for name in dict.fromkeys(name for _, name in exams)],
        "rows": list(rows.values()),
        "trainings": [{"arm": arm, "label": trained.label} for arm, trained in place.trained(seed).items()],
    }


def _question(row: Row, name: str) -> dict[str, Any]:
    return {"set": name, "id": row.id, "class": row.class_, "text": row.question, "golds": row.golds, "by": {}}


def lessons(place: ViewedPlace, seed: int, arm: str | None) -> dict[str, Any]:
    """Return the iterations of a training: the question, its forward pass, the edits of the backward pass."""
    viewed = place.viewed(seed, arm)
    rows = iterations(viewed.events, questions_of(place, seed))
    return {"arm": viewed.name, "label": viewed.label, "rows": rows}


def iterations(events: Sequence[Event], known: Mapping[str, Question]) -> list[dict[str, Any]]:
    """Return a row for each iteration of a trace, oldest first."""
    steps = Counter(
        event.iteration for event in events if isinstance(event, Acted) and event.phase in ("forward", "serve")
    )
    return [
        {
            **picked(entry, "iteration", "epoch", "answer", "golds", "f1", "links", "undone"),
            "id": entry.question,
            "class": known[entry.question].class_ if entry.question in known else "",
            "text": entry.text or entry.reason,
            "steps": steps[entry.iteration],
            "outcome": "rolled back" if entry.rollback_to is not None else entry.outcome,
            "edits": sum(entry.edits.values()),
        }
        for entry in log(events)
    ]


def questions_of(place: ViewedPlace, seed: int) -> dict[str, Question]:
    """Return the questions of the world and of the probe groups, by id."""

    def made() -> dict[str, Question]:
        world = place.world(seed)
        found = {question.id: question for question in world.questions} if world else {}
        for file in sorted((place.base(seed) / "probe").glob("*.jsonl")):
            for question in read_lines(file, Question):
                found.setdefault(question.id, question)
        return found

    return place.keep(("questions", seed), made)


# -- one exam question ------------------------------------------------------------------------------------------------


def exam(place: ViewedPlace, seed: int, name: str, id: str, arms: list[str]) -> dict[str, Any]:
    """Return one question on one arm or several, side by side."""
    exams = place.exams(seed)
    wanted = [arm for arm in arms if (arm, name) in exams]
    if not wanted:
        raise BadInput(f"there is no exam of these stores on {name[:60]!r}.")
    asked = questions_of(place, seed).get(id)
    sides, paired = [], []
    first: Row | None = None
    for arm in wanted[:4]:
        row = next((row for row in exams[arm, name] if row.id == id), None)
        if row is None:
            continue
        first = first or row
        viewed = place.viewed(seed, arm)
        steps = [step(at, shot.action, shot.result, viewed.text) for at, shot in enumerate(row.shots, 1)]
        _mark(viewed, steps, asked)
        paired.append([(shot.action, one) for shot, one in zip(row.shots, steps, strict=True)])
        plain = picked(row, "answer", "f1", "em", "actions", "characters", "outcome", "failure")
        usage = {name: row.usage.get(name) for name in ("prompt", "completion", "cost")} if row.usage else None
        sides.append({**plain, "usage": usage, "arm": arm, "label": place.label(seed, arm), "steps": steps})
    if first is None:
        raise BadInput(f"there is no question {id[:60]!r} in {name[:60]!r}.")
    if len(paired) == 2:
        mark_shared(*paired)
    taught = [
        {"arm": arm, "iteration": event.iteration}
        for arm, trained in place.trained(seed).items()
        for event in trained.events
        if isinstance(event, Began) and event.phase == "forward" and event.question == id
    ]
    viewed = place.viewed(seed, wanted[0])
    support = [{"id": one, "text": viewed.text(one)} for one in (asked.support if asked else ())]
    return {**_question(first, name), "sides": sides, "support": support, "taught": taught}


def _mark(viewed: ViewedStore, steps: list[dict[str, Any]], asked: Question | None) -> None:
    if asked is None or not asked.support:
        return
    support = frozenset(asked.support)

    def carried(id: str) -> frozenset[str]:
        """Return the supporting facts that a document carries; a merge keeps them."""
        return support.intersection(viewed.store[id].origins) if id in viewed.store else frozenset()

    mark_evidence(steps, carried, len(support))


# -- one training question --------------------------------------------------------------------------------------------


def lesson(place: ViewedPlace, seed: int, arm: str | None, iteration: int) -> dict[str, Any]:
    """Return both passes of an iteration: steps with the texts of that moment, edits with their effects."""
    viewed = place.viewed(seed, arm)
    if not viewed.events:
        raise BadInput(f"{viewed.label} was not trained.")
    wanted = [event for event in viewed.events if getattr(event, "iteration", -1) == iteration]
    if not any(isinstance(event, Began) for event in wanted):
        raise BadInput(f"there is no pass in iteration {iteration}.")
    sides: dict[str, dict[str, Any]] = {}
    found: dict[str, Any] = {"iteration": iteration, "arm": viewed.name, "label": viewed.label, "golds": [], "f1": None}

    def watch(event: Event, store: Store) -> None:
        if getattr(event, "iteration", -1) != iteration:
            return
        match event:
            case Began(_, phase, agent, question, text, epoch):
                sides[phase] = {"phase": phase, "agent": agent, "steps": [], "outcome": ""}
                found.update(id=question, text=text, epoch=epoch)
            case Acted(_, phase, number, action, result):
                texts = {record: store[record].text for record in _ids(result) if record in store}
                one = step(number, action, result, lambda id: texts.get(id, "(removed by this action)"))
                if (about := edited_id(result)) is not None:
                    one["effect"] = _effect(viewed, place, seed, about, iteration)
                sides.setdefault(phase, {"phase": phase, "agent": "", "steps": [], "outcome": ""})["steps"].append(one)
            case Ended(_, phase, outcome, failure):
                sides[phase] |= {"outcome": outcome, "failure": failure}
            case Graded():
                found.update(golds=event.golds, f1=event.f1, em=event.em, answer=event.answer)

    commits = (event.iteration for event in viewed.events if isinstance(event, Committed))
    viewed.place.store(next(one for one in commits if one >= iteration), watch)
    asked = questions_of(place, seed).get(found.get("id", ""))
    for side in sides.values():
        if side["phase"] == "forward":
            _mark(viewed, side["steps"], asked)
    return {**found, "class": asked.class_ if asked else "", "sides": list(sides.values())}


def _ids(result: Any) -> list[str]:
    """Return the ids of all documents that a result names."""
    single = [getattr(result, field) for field in ("id", "into", "source") if hasattr(result, field)]
    return single + [id for field in ("ids", "links", "linked") for id in getattr(result, field, ())]


def _effect(viewed: ViewedStore, place: ViewedPlace, seed: int, id: str, iteration: int) -> dict[str, Any]:
    """Describe an edited document today: what it is, and how often it was opened afterwards."""
    return {
        "id": id,
        "kind": viewed.kind_of(id),
        "links": len(viewed.store[id].links) if id in viewed.store else 0,
        "later": sum(one > iteration for one in viewed.readings.get(id, ())),
        "exams": openings(place, seed, viewed.name)[id],
    }


def openings(place: ViewedPlace, seed: int, arm: str) -> Counter[str]:
    """Count the exam questions on a store in which each document was opened."""

    def made() -> Counter[str]:
        found: Counter[str] = Counter()
        for (examined, _), rows in place.exams(seed).items():
            if examined == arm:
                for row in rows:
                    found.update({shot.result.id for shot in row.shots if isinstance(shot.result, actions.Opened)})
        return found

    return place.keep(("openings", seed, arm), made)


# -- passes ------------------------------------------------------------------------------------------------------------


def action_shown(action: actions.Action) -> dict[str, Any]:
    """Return an action for the page: the tool, its text, the document it names, and those it links."""
    match action:
        case actions.Search(query, page):
            return {"tool": "search", "text": query, "note": f"page {page}" if page > 1 else ""}
        case actions.Invalid(name, reason):
            return {"tool": name or "invalid", "text": reason}
    found: dict[str, Any] = msgspec.to_builtins(action)
    if "source" in found:
        targets = found["targets"] if "targets" in found else [found["target"]]
        return {"tool": found["tool"], "id": found["source"], "targets": targets}
    return found


def result_shown(result: actions.Result, text_of: TextOf) -> dict[str, Any]:
    """Return a result for the page: a sentence, and the documents it shows."""
    match result:
        case actions.Found(ids):
            shown = actions.shown_by(result)
            return {"kind": "found", "say": "" if ids else "Nothing found.", "lines": _lines(shown, text_of)}
        case actions.Opened(id, links):
            many = f"It links to {len(links)}:" if links else "It links to nothing."
            return {"kind": "opened", "say": many, "head": _lines([id], text_of), "lines": _lines(links, text_of)}
        case actions.Added(id) | actions.Edited(id):
            say = "Added." if isinstance(result, actions.Added) else "Edited."
            return {"kind": "edit", "say": say, "lines": _lines([id], text_of)}
        case actions.Merged(into):
            return {"kind": "edit", "say": render(result, text_of).partition("\n")[0], "lines": _lines([into], text_of)}
        case actions.Linked(source, linked):
            head, lines = _lines([source], text_of), _lines(linked, text_of)
            return {"kind": "edit", "say": render(result, text_of), "head": head, "lines": lines}
        case actions.Error():
            return {"kind": "error", "say": render(result, text_of), "lines": []}
    return {"kind": "plain", "say": render(result, text_of), "lines": []}


def _lines(ids: Sequence[str], text_of: TextOf) -> list[dict[str, str]]:
    return [{"id": id, "text": text_of(id)} for id in ids]


def step(number: int, action: actions.Action, result: actions.Result, text_of: TextOf) -> dict[str, Any]:
    return {"n": number, **action_shown(action), "result": result_shown(result, text_of)}


def mark_evidence(steps: Sequence[dict[str, Any]], support: Callable[[str], Collection[str]], wanted: int) -> None:
    """Mark the lines that show a fact the answer depends on, and count the facts seen at each step."""
    seen: set[str] = set()
    for one in steps:
        result = one["result"]
        for line in (*result.get("head", ()), *result["lines"]):
            if found := support(line["id"]):
                line["evidence"] = True
                line["first"] = not seen.issuperset(found)
                seen.update(found)
        one["evidence"] = [len(seen), wanted]


def mark_shared(left: Steps, right: Steps) -> None:
    """Mark the steps that both passes took; the others are the actions saved or spent."""
    before, after = ([encode(action) for action, _ in side] for side in (left, right))
    for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            left[block.a + offset][1]["shared"] = right[block.b + offset][1]["shared"] = True


def edited_id(result: actions.Result) -> str | None:
    """Return the id of the document that an edit changed."""
    match result:
        case actions.Added(id) | actions.Edited(id):
            return id
        case actions.Merged(into):
            return into
        case actions.Linked(source, linked) if linked:
            return source
        case actions.Unlinked(source):
            return source
    return None
