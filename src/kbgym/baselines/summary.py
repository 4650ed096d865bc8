"""A group of documents in one sentence, by a rule: what it is about, most named first.

It stands where a language model writes a summary, costs nothing, and is the same every time. It recites no fact: a
summary points, the documents under it tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kbgym.baselines.entities import DATE, NAME, Entity

MOST_NAMES = 12


def central(mentioned: Iterable[Sequence[Entity]]) -> list[Entity]:
    """Entities by how many documents name them, ties by who comes first; dates only where there is nothing else."""
    counts: Counter[Entity] = Counter()
    for entities in mentioned:
        counts.update(entities)
    order = {entity: place for place, entity in enumerate(counts)}
    return sorted(counts, key=lambda entity: (entity.kind == DATE, -counts[entity], order[entity]))


def sentence(entities: Sequence[Entity], documents: int) -> str:
    """ "Summary of 12 documents about tailor (job), Ann Bly, Bo Cade and 3 more"."""
    about = ", ".join(_phrase(entity) for entity in entities[:MOST_NAMES])
    left = len(entities) - MOST_NAMES
    more = f" and {left} more" if left > 0 else ""
    return f"Summary of {documents} documents" + (f" about {about}{more}" if about else "")


def _phrase(entity: Entity) -> str:
    return entity.name if entity.kind in (NAME, DATE) else f"{entity.name} ({entity.kind})"
