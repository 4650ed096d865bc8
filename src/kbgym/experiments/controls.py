"""Controls: training runs that should gain nothing if training helps for the claimed reasons.

wrong-answers     the expected answers of the training questions are permuted
no-questions      no question is asked: every index that documents alone suggest is built
random-questions  the training questions are replaced by questions drawn at random
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from msgspec.structs import replace

from kbgym.api.factory import embedder_named
from kbgym.baselines import build_arm
from kbgym.errors import BadInput
from kbgym.store import Store
from kbgym.training.run import Settings
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Document, Question, World

CONTROLS = ("wrong-answers", "no-questions", "random-questions")


def controlled(world: World, control: str, settings: Settings) -> tuple[World, Settings, Store | None]:
    """Return the world, the settings and the initial store of a training under a control."""
    if control not in CONTROLS:
        raise BadInput(f"there is no control {control!r}; there are {', '.join(CONTROLS)}.")
    draw = Random(f"{settings.seed}:{control}")
    asked = world.split("train")
    if control == "no-questions":
        arm = "pages" if kind_of(world).oracle(world) is None else "oracle"
        built = build_arm(arm, world, lambda: embedder_named(settings.embedder), settings.seed).store
        said = f"{arm} {built.fingerprint[:16]}"
        return world, replace(settings, questions=0, epochs=1, eval=False, begins=said), built
    found = _permuted(asked, draw) if control == "wrong-answers" else _random(world, asked, draw)
    by_id = {question.id: question for question in found}
    questions = tuple(by_id.get(question.id, question) for question in world.questions)
    return World(world.documents, questions, {**world.facts, "control": control}), settings, None


def _permuted(asked: Sequence[Question], draw: Random) -> list[Question]:
    """Permute the answers so that each question has those of another, with a different answer where possible."""
    order = list(range(len(asked)))
    draw.shuffle(order)
    # Sorted by answer and shifted by the largest group of equal answers, no question keeps its own.
    order.sort(key=lambda at: asked[at].golds)
    most = max((sum(one.golds == asked[at].golds for one in asked) for at in order), default=0)
    return [
        replace(asked[at], golds=asked[other].golds, unanswerable=asked[other].unanswerable)
        for at, other in zip(order, order[most:] + order[:most], strict=True)
    ]


def _random(world: World, asked: Sequence[Question], draw: Random) -> list[Question]:
    """Draw questions of the same templates from the world's pools, or about random documents if it has none."""
    taken = {question.text for question in world.questions}
    if not kind_of(world).has_pools:
        chosen = draw.sample(world.documents, min(len(asked), len(world.documents)))
        return [_about(question, document) for question, document in zip(asked, chosen, strict=False)]
    found = []
    pools = {
        name: [one for one in kind_of(world).pool(world, name) if one.text not in taken]
        for name in sorted({question.template for question in asked})
    }
    for question in asked:
        pool = pools[question.template] or max(pools.values(), key=len)  # a rare template may run out
        if not pool:
            raise BadInput("this world has no other questions to draw at random.")
        drawn = pool.pop(draw.randrange(len(pool)))
        found.append(replace(drawn, id=question.id, split="train"))
    return found


def _about(question: Question, document: Document) -> Question:
    """Ask for the second half of a document by its first."""
    words = document.text.split()
    half = max(1, len(words) // 2)
    text, gold = " ".join(words[:half]), " ".join(words[half:]) or document.text
    return replace(question, text=f"{text} …?", golds=(gold,), keys=(), support=(document.id,), unanswerable=False)
