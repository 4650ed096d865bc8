"""Health of a store: coverage, the audit and the ledger, with suspicious links and suggested next steps.

Coverage has four readings, as shares of the originals (or of the questions). The report works for any store. With a
world's truth, wrong links are known; without one, a link is only suspected, if it is the outlier of an index most of
whose targets share a word with it. Commands are suggested by verb, so that callers can omit verbs that are not
available.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from shlex import quote

import msgspec

from kbgym.analysis.audit import Audit, Auditor, Index, telling_words
from kbgym.store import Ledger, Record, Store, ledger
from kbgym.store.record import normalised
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Question, World


class Coverage(msgspec.Struct, frozen=True):
    """`direct`: linked from an authored document. `two_hops`: also through the documents it links to.

    `confirmed`: only links a check calls correct (None without a check). `questions`: questions whose whole support
    one index reaches in one read (None without questions).
    """

    direct: float
    two_hops: float
    confirmed: float | None = None
    questions: float | None = None


def coverage(
    store: Store, correct: Callable[[Record, str], bool] | None = None, questions: Iterable[Question] = ()
) -> Coverage:
    """Measure a store; `correct(index, target)` says whether a link belongs."""
    indexes = [record for record in store.authored() if record.links]
    direct: set[str] = set()
    two_hops: set[str] = set()
    confirmed: set[str] = set()
    for index in indexes:
        for target in index.links:
            linked = store[target]
            direct.update(linked.origins)
            if correct is not None and linked.origins and correct(index, target):
                confirmed.update(linked.origins)
            for further in linked.links:
                two_hops.update(store[further].origins)
    total = max(1, store.origins)
    supports = [set(question.support) for question in questions if question.support]
    return Coverage(
        direct=len(direct) / total,
        two_hops=len(direct | two_hops) / total,
        confirmed=len(confirmed) / total if correct is not None else None,
        questions=_reached(store, indexes, supports) / len(supports) if supports else None,
    )


def _reached(store: Store, indexes: list[Record], supports: list[set[str]]) -> int:
    """Return the number of questions whose supports all lie under one index; a merge keeps supports reachable."""
    above: dict[str, set[int]] = {}
    for number, index in enumerate(indexes):
        for target in index.links:
            for origin in store[target].origins:
                above.setdefault(origin, set()).add(number)
    nothing: set[int] = set()
    return sum(bool(set.intersection(*(above.get(id, nothing) for id in support))) for support in supports)


class Suspect(msgspec.Struct, frozen=True):
    """A link that is wrong, or that is suspected where the facts are unknown."""

    index: str
    index_text: str
    target: str
    target_text: str


class Advice(msgspec.Struct, frozen=True):
    """One plain sentence, and the matching command, if any, without the program's name."""

    sentence: str
    command: str = ""

    @property
    def verb(self) -> str:
        return self.command.partition(" ")[0]


class Health(msgspec.Struct, frozen=True):
    """Everything `kbgym audit` shows. `links` counts links by what they join; `lost` names original documents."""

    ledger: Ledger
    coverage: Coverage
    audit: Audit
    links: dict[str, int]
    suspects: tuple[Suspect, ...]
    orphans: tuple[str, ...]
    lost: tuple[str, ...]
    same_keys: tuple[tuple[str, ...], ...]
    same_texts: tuple[tuple[str, ...], ...]
    biggest: tuple[Index, ...]
    incomplete: tuple[Index, ...]

    @property
    def duplicates(self) -> int:
        """Return documents that repeat another one: the same text, or an index of the same key."""
        groups = (*self.same_texts, *self.same_keys)
        return len({id for group in groups for id in group[1:]})


def health(store: Store, world: World | None = None, origins: Sequence[str] = ()) -> Health:
    """Examine a store. `origins` are its initial originals; those that no document carries are reported as lost."""
    truth = kind_of(world).truth(world) if world and world.documents else None
    auditor = Auditor(store, truth)
    audit = auditor.audit()
    authored = store.authored()
    alive = {origin for record in store for origin in record.origins}
    by_size = sorted((index for index in audit.indexes if index.degree), key=lambda index: (-index.degree, index.id))
    incomplete = [index for index in audit.indexes if index.scored and index.missing]
    suspected: list[tuple[Index | Record, str]] = []
    if truth:
        suspected += [(index, target) for index in audit.indexes for target in index.wrong]
    else:
        suspected += [(index, target) for index in authored for target in _odd_ones_out(store, index)]
    return Health(
        ledger=ledger(store),
        coverage=coverage(store, auditor.correct if truth else None, world.questions if world else ()),
        audit=audit,
        links=_joined(store),
        suspects=tuple(Suspect(index.id, index.text, target, store[target].text) for index, target in suspected),
        orphans=tuple(record.id for record in authored if not record.links and not store.inbound(record.id)),
        lost=tuple(origin for origin in dict.fromkeys(origins) if origin not in alive),
        same_keys=_repeated(
            ((index.key.kind, index.key.value), index.id)
            for index in audit.indexes
            if index.key is not None and index.shape != "materialised"
        ),
        same_texts=_repeated((normalised(record.text), record.id) for record in store),
        biggest=tuple(by_size[:5]),
        incomplete=tuple(sorted(incomplete, key=lambda index: (-len(index.missing), index.id))),
    )


def _joined(store: Store) -> dict[str, int]:
    """Count links by the kinds they join; an index here is any authored document."""
    name = {True: "index", False: "source"}
    ends = Counter(
        f"{name[record.flag == 'authored']} to {name[store[target].flag == 'authored']}"
        for record in store
        for target in record.links
    )
    return {f"{a} to {b}": ends[f"{a} to {b}"] for a in ("index", "source") for b in ("source", "index")}


def _odd_ones_out(store: Store, index: Record) -> list[str]:
    """Return targets that share no distinctive word with their index, if most of its other targets do."""
    words = telling_words(index.text)
    strange = [target for target in index.links if not words & _said(store, target)]
    return strange if 2 * len(strange) < len(index.links) else []


def _said(store: Store, id: str) -> frozenset[str]:
    """Return the distinctive words of a document and, if it is an index, of the documents it links to."""
    record = store[id]
    below = record.links if record.flag == "authored" else ()
    return telling_words(record.text).union(*(telling_words(store[target].text) for target in below))


def _repeated(ids: Iterable[tuple[Hashable, str]]) -> tuple[tuple[str, ...], ...]:
    """Group ids by what they have in common, and return the groups of several."""
    groups: dict[Hashable, list[str]] = {}
    for common, id in ids:
        groups.setdefault(common, []).append(id)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


# -- next steps --------------------------------------------------------------------------------------------------------


def advice(health: Health, place: str) -> list[Advice]:
    """Return suggested next steps, most serious first. Their commands are quoted for a shell."""
    audit, place, found = health.audit, quote(place), list[Advice]()
    lost = len(health.lost) or health.ledger.lost_origins
    blamed = f"store blame {place} {quote(health.lost[0])}" if health.lost else f"store log {place}"
    suspect = health.suspects[0] if health.suspects else None
    incomplete = health.incomplete
    missing = sum(len(index.missing) for index in incomplete)
    repeated = (*health.same_texts, *health.same_keys)

    def add(count: int, sentence: str, command: str) -> None:
        if count:
            found.append(Advice(sentence, command))

    add(lost, f"original facts lost: {lost:,}; find the edit and undo it", blamed)
    if suspect:
        sure = "wrong" if audit.resolved else "suspected wrong"
        links = f"links {sure}: {len(health.suspects):,}, such as {suspect.index} to {suspect.target}; see who made it"
        add(1, links, f"store blame {place} {quote(suspect.index)}")
    for shape, said in (
        ("materialised", "documents that state an answer instead of pointing to it"),
        ("stub", "stubs without a link; let training fill or delete them"),
    ):
        ids = [index.id for index in audit.indexes if index.shape == shape]
        add(len(ids), f"{said}: {len(ids):,}", f"store read {place} {quote(ids[0])}" if ids else "")
    if incomplete:
        said = f"incomplete indexes: {len(incomplete):,}, missing {missing:,} members, {incomplete[0].id} most"
        add(1, f"{said}; what each misses", f"audit {place} --json")
    if health.duplicates:
        said = f"documents that repeat another: {health.duplicates:,}, such as {' and '.join(repeated[0][:2])}"
        add(1, said, f"store read {place} {quote(repeated[0][1])}")
    if not audit.indexes:
        add(1, "there is no index yet; train the store on questions", "train --help")
    elif health.coverage.direct < 1:
        rest = 1 - health.coverage.direct
        add(1, f"{rest:.1%} of the originals are under no index; train on questions that name other keys", "")
    return found
