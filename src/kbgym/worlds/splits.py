"""Which page of its source a document stands on, and that page's title, as far as documents say.

A page is a file, a row of a table file, or what the documents of a public set are about. A world that was generated has
none. It knows documents, and nothing of stores or search.


How many questions the splits of a made world have, and how lists of questions are mixed and cut fairly.

It knows nothing of what the questions ask.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TypeVar

import msgspec

from kbgym.errors import BadInput
from kbgym.worlds.world import Document, Question, World

_ROWS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_DEEPER = " > "


class SourcePage(msgspec.Struct, frozen=True):
    """A page and its documents in the order they stand there."""

    title: str
    documents: tuple[Document, ...]


def page_of_source(document: Document) -> str | None:
    """A name for the page; two documents of one page have the same."""
    if document.source is not None:
        source = document.source
        by_row = source.file.lower().endswith(_ROWS)
        return f"{source.file}:{source.start}-{source.end}" if by_row else source.file
    title = document.about[0] if document.about else ""
    return title if title and document.text.startswith(f"{title}: ") else None


def pages_of(documents: Iterable[Document]) -> dict[str, str]:
    """The page of each document that has one, by id."""
    found = ((document.id, page_of_source(document)) for document in documents)
    return {id: page for id, page in found if page is not None}


def source_pages(documents: Iterable[Document]) -> list[SourcePage]:
    """All pages, in the order of their first documents."""
    grouped: dict[str, list[Document]] = {}
    for document in documents:
        if (page := page_of_source(document)) is not None:
            grouped.setdefault(page, []).append(document)
    return [SourcePage(_title(page, found), _in_order(found)) for page, found in grouped.items()]


def _in_order(found: list[Document]) -> tuple[Document, ...]:
    """By their place in the file; those of a public set stand as they were read."""
    return tuple(sorted(found, key=lambda document: document.source.start if document.source else 0))


def _title(page: str, found: list[Document]) -> str:
    """What most documents that begin with a title begin with, else the file's name."""
    first = found[0]
    if first.source is None:
        return page
    titles = Counter(title for document in found if (title := _before_colon(document.text)))
    if titles:
        title, times = titles.most_common(1)[0]
        if times > 1 or len(found) <= 2:
            return title
    stem = posixpath.splitext(posixpath.basename(first.source.file))[0]
    return " ".join(stem.replace("_", " ").replace("-", " ").split())


def _before_colon(text: str) -> str:
    before, colon, _ = text.partition(": ")
    return before.partition(_DEEPER)[0].strip() if colon else ""


T = TypeVar("T")


class Sizes(msgspec.Struct, frozen=True):
    """How many questions each split has; eval has a part of trained and a part of reserved templates."""

    train: int = 150
    test_in: int = 100
    test_out: int = 50
    eval_in: int = 20
    eval_out: int = 10

    def parts(self) -> list[tuple[str, bool, int]]:
        """(split, reserved templates?, questions)."""
        return [
            ("train", False, self.train),
            ("test_in", False, self.test_in),
            ("test_out", True, self.test_out),
            ("eval", False, self.eval_in),
            ("eval", True, self.eval_out),
        ]


def interleave(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    """Merge lists so that each is spread evenly over the whole; the order within each is kept."""
    taken = [0] * len(lists)
    for _ in range(sum(map(len, lists))):
        open_ = [place for place, items in enumerate(lists) if taken[place] < len(items)]
        place = min(open_, key=lambda place: (2 * taken[place] + 1) / len(lists[place]))
        yield lists[place][taken[place]]
        taken[place] += 1


def training_subset(
    questions: Sequence[Question], n: int, difficulty: Callable[[Question], int]
) -> tuple[Question, ...]:
    """`n` of these questions with the same share of each difficulty and the templates in round robin.

    The order is a mixture too, so that a training run that stops early has seen all kinds.
    """
    if not 0 <= n <= len(questions):
        raise BadInput(f"cannot take {n} of {len(questions)} training questions.")
    groups: dict[int, list[Question]] = {}
    for item in questions:
        groups.setdefault(difficulty(item), []).append(item)
    ordered = [_round_robin(groups[group]) for group in sorted(groups)]
    counts = shares([len(items) for items in ordered], n)
    return tuple(interleave([items[:count] for items, count in zip(ordered, counts, strict=True)]))


def _round_robin(questions: Sequence[Question]) -> list[Question]:
    by_template: dict[tuple[str, str], list[Question]] = {}
    for item in questions:
        by_template.setdefault((item.class_, item.template), []).append(item)
    rank: dict[str, int] = {}
    lists = []
    for (class_, _), items in by_template.items():
        rank[class_] = rank.get(class_, 0) + 1
        lists.append((rank[class_], items))
    lists.sort(key=lambda pair: pair[0])
    longest = max((len(items) for _, items in lists), default=0)
    return [items[turn] for turn in range(longest) for _, items in lists if turn < len(items)]


def sharing(world: World) -> int:
    """How many test questions are supported by a page that supports a training question too."""
    pages = pages_of(world.documents)
    trained = {pages[id] for question in world.split("train") for id in question.support if id in pages}
    tested = (question for name in ("test_in", "test_out") for question in world.split(name))
    return sum(any(pages.get(id) in trained for id in question.support) for question in tested)


def with_pages_apart(world: World, seed: int) -> World:
    """The same world with its questions drawn anew: no page supports questions of two splits.

    Questions that share a page, directly or through others, stay together; each such group goes to the split that is
    furthest from the share it has now, the largest groups first. Questions of other splits than the usual stay there.
    """
    pages = pages_of(world.documents)
    sizes = {name: len(world.split(name)) for name in ("train", "test_in", "eval") if world.split(name)}
    open_ = [question for question in world.questions if question.split in sizes]
    groups: list[tuple[set[str], list[Question]]] = []
    for question in open_:
        mine = {pages[id] for id in question.support if id in pages}
        joined = [group for group in groups if group[0] & mine]
        groups = [group for group in groups if not group[0] & mine]
        groups.append(
            (mine.union(*(group[0] for group in joined)), [q for group in joined for q in group[1]] + [question])
        )
    lists = [sorted(group[1], key=lambda question: question.id) for group in groups]
    lists.sort(key=lambda group: group[0].id)
    Random(f"{seed}:pages apart").shuffle(lists)
    lists.sort(key=lambda group: -len(group))
    left, chosen = dict(sizes), {}
    for group in lists:
        name = max(left, key=lambda name: left[name] / sizes[name])
        left[name] -= len(group)
        chosen.update({question.id: name for question in group})
    moved = (msgspec.structs.replace(one, split=chosen.get(one.id, one.split)) for one in world.questions)
    return msgspec.structs.replace(world, questions=tuple(moved))


def shares(sizes: Sequence[int], n: int) -> list[int]:
    """Split n in proportion to sizes, the largest remainders rounded up."""
    total = sum(sizes)
    found = [size * n // total for size in sizes]
    for place in sorted(range(len(sizes)), key=lambda place: -(sizes[place] * n % total))[: n - sum(found)]:
        found[place] += 1
    return found
