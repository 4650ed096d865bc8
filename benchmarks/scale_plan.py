"""What kbgym would need past one machine: a simulation from constants measured here, and where each seam breaks first.

    python benchmarks/scale_plan.py [--price DOLLARS] [--seed N] [--fleet]

Prints the tables of docs/scale.md, to the byte for the same flags; with `--fleet` those of training fleets alone.
`--price` is dollars a million tokens. What does not add up is simulated: curators who take turns at one commit order,
trainers who also follow one another, searches that come in bursts, and shards of which the slowest is waited for. The
rest is multiplication. Nothing here was run at these sizes.
"""

from __future__ import annotations

import argparse
import bisect
import heapq
import math
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

DAY = 86_400
GB = 1e9
LONG_AGO = 50  # ms, as `trace/database_turn.py` has it
SHARD = 1_000_000  # documents; what one process was measured with


class Constant(NamedTuple):
    """A number everything is computed from. `kind` is measured (on two shared cores), paper or assumed."""

    value: float
    unit: str
    kind: str
    where: str


CONSTANTS = {
    "exact search": Constant(15.0, "ms at 100,000", "measured", "RESULTS.md, search; grows with the documents"),
    "graph search": Constant(4.3, "ms at 100,000", "measured", "RESULTS.md, scale; grows with their logarithm"),
    "word search": Constant(2.9, "ms at 1,000,000", "measured", "RESULTS.md, large; grows with the documents"),
    "shard search": Constant(5.1, "ms at 1,000,000", "measured", "RESULTS.md, scale: p50, with the query's embedding"),
    "slow shard search": Constant(9.3, "ms at 1,000,000", "measured", "RESULTS.md, scale: p99"),
    "pgvector search": Constant(21.2, "ms at 300,000", "measured", "RESULTS.md, database: p50, a page of five"),
    "graph build": Constant(1_900, "vectors a second", "measured", "RESULTS.md, scale: a million, two cores"),
    "embedding": Constant(666, "sentences a second a core", "measured", "RESULTS.md, search"),
    "new query": Constant(5.5, "ms of one core", "measured", "RESULTS.md, search"),
    "store in memory": Constant(573, "bytes a document", "measured", "RESULTS.md, store: 0.32 GiB at 600,000"),
    "opening a store": Constant(7.4, "µs a document", "measured", "RESULTS.md, store: 4.42 s at 600,000"),
    "vector": Constant(1_536, "bytes a document", "measured", "384 float32 numbers"),
    "graph": Constant(600, "bytes a document", "measured", "0.6 GB at 1,000,000"),
    "commit": Constant(1.04, "ms of the turn", "measured", "RESULTS.md, writers: 965 a second from 16 x 4 clients"),
    "outside the turn": Constant(1.44, "ms an action of rules", "measured", "RESULTS.md, fleet: one trainer"),
    "within the turn": Constant(1.09, "ms an action of rules", "measured", "RESULTS.md, fleet: one trainer"),
    "following": Constant(0.236, "ms an action of another's", "measured", "RESULTS.md, fleet: many at once"),
    "disk": Constant(0.44, "ms an action", "measured", "RESULTS.md, fleet; others have their turn meanwhile"),
    "processor": Constant(2.59, "ms an action of rules", "measured", "RESULTS.md, fleet: trainer and server"),
    "turns of rules": Constant(38.3, "a lesson", "measured", "RESULTS.md, fleet; three of them no action"),
    "trace": Constant(227, "bytes an event", "measured", "RESULTS.md, replay: 1.0 MB for 4,401"),
    "replay": Constant(43_600, "events a second", "measured", "RESULTS.md, replay: 0.101 s for 4,401"),
    "lesson": Constant(20, "actions", "measured", "RESULTS.md, train: 4,018 in 200"),
    "lesson of rules": Constant(36, "actions", "measured", "RESULTS.md, hundredfold"),
    "beside search": Constant(
        0.9, "ms an action of rules", "measured", "RESULTS.md, hundredfold: last of 10,000 lessons"
    ),
    "searching of rules": Constant(37, "ms a lesson at 584,498", "measured", "RESULTS.md, hundredfold; by words"),
    "covered": Constant(43, "documents a lesson of rules", "measured", "RESULTS.md, hundredfold: 73% by 10,000"),
    "agenda": Constant(150, "KB a lesson of rules", "measured", "RESULTS.md, hundredfold"),
    "keys": Constant(0.113, "a document", "measured", "66,000 people, jobs, hobbies, cities in 584,498"),
    "links at once": Constant(40, "targets", "paper", "the most one link_many takes"),
    "exam question": Constant(5.1, "ms of one core", "measured", "RESULTS.md, ray: 10.25 s for 2,000"),
    "new queries": Constant(2.5, "a question", "measured", "reference reader, flat store; pages share a ranking"),
    "lesson of a model": Constant(123, "s", "paper", "200 lessons in 6.8 h"),
    "question of a model": Constant(37, "s", "assumed", "nine of a lesson's thirty turns"),
    "tokens a lesson": Constant(94_000, "tokens", "paper", "18.8 million in 200"),
    "tokens a question": Constant(27_500, "tokens", "assumed", "of the paper's 94,000 a lesson"),
    "price": Constant(0.69, "$ a million tokens", "paper", "18.8 million for $13"),
    "peak": Constant(2.5, "times the mean", "assumed", "the busiest minute of a day"),
    "machine": Constant(256, "GB", "assumed", "memory of one server"),
}


TURNS = 20_000  # of a simulated fleet
FLEETS = (1, 2, 4, 8, 16, 32, 64, 256, 1_024)
# Who trained on two cores, and the ms it thinks an action: turns a second by trainers (RESULTS.md, fleet).
MEASURED: dict[tuple[str, float], dict[int, float]] = {
    ("rules", 0.0): {1: 337, 2: 452},
    ("rules that think 0.02 s an action", 20.0): {1: 44, 2: 84, 4: 162, 8: 257},
}


def value(name: str) -> float:
    return CONSTANTS[name].value


class Size(NamedTuple):
    """What is asked of a deployment; `asked` is questions a day."""

    name: str
    documents: int
    curators: int
    asked: int


SIZES = (
    Size("a laptop", 6_000, 1, 1_000),
    Size("a team", 1_000_000, 16, 10_000),
    Size("internet", 100_000_000, 1_000, 1_000_000),
)


# -- what queues -------------------------------------------------------------------------------------------------------


def turns(curators: int, shards: int, seed: int, commits: int = 40_000) -> tuple[float, float]:
    """Commits a second, and the wait for a turn that 19 in 20 stay below, in ms: curators think, then queue.

    Each commit goes to one of `shards` commit orders; a turn takes as long as it takes, one after the other.
    """
    draw = random.Random(seed)
    service = value("commit") / 1000
    think = value("lesson of a model") / value("lesson") - service
    ready = [(draw.expovariate(1 / think), curator) for curator in range(curators)]
    heapq.heapify(ready)
    free = [0.0] * shards
    waits, last = [], 0.0
    for _ in range(commits):
        now, curator = heapq.heappop(ready)
        shard = draw.randrange(shards)
        begin = max(now, free[shard])
        free[shard] = last = begin + service
        waits.append(begin - now)
        heapq.heappush(ready, (free[shard] + draw.expovariate(1 / think), curator))
    return commits / last, percentile(waits[commits // 10 :], 0.95) * 1000


def shards_needed(curators: int, seed: int) -> int:
    """The fewest commit orders at which 19 of 20 turns come within 50 ms."""
    return first(lambda shards: turns(curators, shards, seed)[1] <= 50)


def busiest(seed: int, shards: int = 1) -> int:
    """How many curators one commit order takes before a turn is waited for longer than that."""
    return max(count for count in range(250, 8_001, 250) if turns(count, shards, seed)[1] <= 50)


def fleet(trainers: int, seed: int, thinks: float = 0.0, early: bool = False) -> tuple[float, float]:
    """Turns a second of trainers at one store, and the share of the time for which somebody has the turn.

    Each thinks (so many ms an action), computes, follows what the others did if it has not looked for a while, and
    queues for the place next in line; there, or `early`, in the queue, it follows what they did since, while the turn
    is another's; with the turn it follows the rest, acts and commits. The disk is waited for after the turn. Every
    trainer has a core, and the server has enough.
    """
    outside, within = value("outside the turn"), value("within the turn")
    follow, disk = value("following"), value("disk")
    draw = random.Random(seed)

    def away() -> float:
        return draw.expovariate(1 / outside) + (draw.expovariate(1 / thinks) if thinks else 0.0)

    coming = [(away(), trainer) for trainer in range(trainers)]
    heapq.heapify(coming)
    seen, in_line, over, held = [0] * trainers, 0.0, 0.0, 0.0
    looked, ends = [0.0] * trainers, list[float]()
    while (done := len(ends)) < TURNS:
        now, trainer = heapq.heappop(coming)
        if now - looked[trainer] > LONG_AGO:
            missed, looked[trainer] = bisect.bisect(ends, now), now
            heapq.heappush(coming, (now + max(0, missed - seen[trainer]) * follow, trainer))
            seen[trainer] = max(seen[trainer], missed)
            continue
        now = now if early else max(now, in_line)
        shown = done if over <= now else done - 1  # the turn that is not over yet is followed when it is
        in_line = max(now + max(0, shown - seen[trainer]) * follow, in_line, over)
        over = in_line + (done - max(shown, seen[trainer])) * follow + within
        held += over - in_line
        seen[trainer], looked[trainer] = done + 1, over
        ends.append(over)
        heapq.heappush(coming, (over + disk + away(), trainer))
    return 1000 * TURNS / over, held / over


def search_cores(size: Size, seed: int, searches: int = 40_000) -> int:
    """The fewest cores on which 99 of 100 searches of the busiest minute wait less than 50 ms."""
    rate = size.asked * value("new queries") * value("peak") / DAY
    service = (value("new query") + search_ms(size.documents)) / 1000

    def fine(cores: int) -> bool:
        draw, now, waits = random.Random(seed), 0.0, []
        free = [0.0] * cores
        for _ in range(searches):
            now += draw.expovariate(rate)
            begin = max(now, heapq.heappop(free))
            heapq.heappush(free, begin + service)
            waits.append(begin - now)
        return percentile(waits, 0.99) <= 0.05

    return first(fine, int(rate * service) + 1)  # with fewer the queue only grows


def slowest(shards: int, seed: int, searches: int = 4_000) -> float:
    """The median time, in ms, until the last of so many shards of a million has answered; times are log-normal."""
    middle = math.log(value("shard search"))
    spread = (math.log(value("slow shard search")) - middle) / 2.326  # p99
    draw = random.Random(seed)
    asked = max(1, searches // shards)
    return percentile([max(draw.lognormvariate(middle, spread) for _ in range(shards)) for _ in range(asked)], 0.5)


def first(fine: Callable[[int], bool], least: int = 1) -> int:
    return next(count for count in range(least, 10_000) if fine(count))


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# -- multiplication ---------------------------------------------------------------------------------------------------


def search_ms(documents: int) -> float:
    """Exact below 100,000 documents, by the graph from there on."""
    if documents < 100_000:
        return value("exact search") * documents / 100_000
    return value("graph search") * math.log(documents) / math.log(100_000)


def pgvector_ms(documents: int) -> float:
    return value("pgvector search") * math.log(documents) / math.log(300_000)


def levels(documents: int) -> int:
    """How many indexes lie one above the other where indexes of indexes lead to every key, forty links each."""
    return math.ceil(math.log(documents * value("keys")) / math.log(value("links at once")))


def rules_ms(documents: int) -> float:
    """A lesson of rules on one core, searching by words in one process."""
    searching = value("searching of rules") * documents / 584_498
    return value("lesson of rules") * value("beside search") + searching


def lessons_a_day(size: Size) -> float:
    return size.curators * DAY / value("lesson of a model")


def rows(size: Size, seed: int, price: float) -> Iterator[tuple[str, str]]:
    documents, lessons = size.documents, lessons_a_day(size)
    events = lessons * value("lesson")
    orders = shards_needed(size.curators, seed)
    rate, wait = turns(size.curators, 1, seed)
    tokens = lessons * value("tokens a lesson"), size.asked * value("tokens a question")
    memory = documents * value("store in memory")
    yield "documents", f"{documents:,}"
    yield "curators, without pause", f"{size.curators:,}"
    yield "questions a day", f"{size.asked:,}"
    yield "embedding every document once", hours(documents / value("embedding"), "core")
    yield (
        "building the graph once, on this machine",
        (hours(documents / value("graph build"), "") if documents >= 100_000 else "none"),
    )
    yield (
        "vectors and graph, mapped",
        amount(documents * (value("vector") + (value("graph") if documents >= 100_000 else 0))),
    )
    yield "one process's store", amount(memory)
    yield "opening it", hours(documents * value("opening a store") / 1e6, "")
    yield "all curators' stores, one process each", amount(memory * size.curators)
    yield "one search", f"{search_ms(documents):.1f} ms, and {value('new query'):.1f} ms for a new query"
    yield "one search in PostgreSQL", f"{pgvector_ms(documents):.1f} ms" if documents >= 100_000 else "exact"
    shards = max(1, round(documents / SHARD))
    yield "the same by words, one process", f"{value('word search') * documents / 1e6:,.1f} ms"
    yield "shards of a million, until the slowest answers", f"{slowest(shards, seed):.1f} ms" if shards > 1 else "one"
    yield "keys; levels of indexes of indexes", f"{documents * value('keys'):,.0f}; {levels(documents)}"
    taught = documents / value("covered")
    yield "lessons of rules until all is indexed", f"{taught:,.0f}"
    yield "those in one process", hours(taught * rules_ms(documents) / 1000, "core")
    yield "those in shards of a million", hours(taught * rules_ms(min(documents, SHARD)) / 1000, "core")
    yield "cores for searches, at the peak", f"{search_cores(size, seed):,}"
    yield "commits a second, one order", f"{rate:,.1f}"
    yield "wait for a turn, 19 of 20 below", f"{wait:,.0f} ms"
    yield "commit orders for 50 ms", f"{orders:,}"
    yield "following one another, all processes", f"{amount(rate * size.curators * value('trace'))} a second"
    yield "trace a day", amount(events * value("trace"))
    yield "replaying a year of it", hours(365 * events / value("replay"), "")
    under_way = size.curators + size.asked * value("question of a model") / DAY
    yield "requests to models under way", f"{under_way:,.0f}"
    yield "tokens a day, curators", f"{tokens[0] / 1e6:,.0f} million"
    yield "tokens a day, readers", f"{tokens[1] / 1e6:,.0f} million"
    yield "models, a day", f"${sum(tokens) / 1e6 * price:,.0f}"
    yield "an exam of as many questions, reference reader", hours(size.asked * value("exam question") / 1000, "core")


def breaks(seed: int) -> Iterator[tuple[str, str, str]]:
    """Where each seam ends: what, at which size, and what comes next."""
    one = busiest(seed)
    roomy = value("machine") * GB
    exact = 100_000 * 10 / value("exact search")
    snapshot = 60 * value("replay")
    yield "exact index", f"{exact:,.0f} documents: 10 ms a search", "the graph, chosen by itself from 100,000 on"
    yield (
        "word index",
        f"{1e6 * 10 / value('word search'):,.0f} documents: 10 ms a search",
        "shards by key: a query that names one is asked of its shard alone",
    )
    yield (
        "one trainer's agenda",
        f"{16 * GB / value('agenda') / 1e3:,.0f} lessons of rules in 16 GB",
        "an agenda for each shard of keys: what it knows is about its keys",
    )
    yield (
        "one level of indexes",
        f"{value('links at once'):,.0f} documents under a key",
        "narrower keys, then indexes of indexes: an action for each level",
    )
    yield (
        "one process's store",
        f"{16 * GB / value('store in memory') / 1e6:,.0f} million documents in 16 GB",
        "documents read from PostgreSQL when asked for, not held",
    )
    yield (
        "one machine's vectors",
        f"{roomy / (value('vector') + value('graph')) / 1e6:,.0f} million documents in {value('machine'):.0f} GB",
        "shards by document, each asked, results merged: scores are exact, so the order is",
    )
    yield (
        "building the graph",
        f"{DAY * value('graph build') / 1e6:,.0f} million documents a day on this machine",
        "shards build side by side; a set grows from an older one instead of starting over",
    )
    yield "one commit order", f"{one:,} curators: a turn waits 50 ms", "a commit order for each shard of keys"
    yield (
        "replay",
        f"{snapshot / 1e6:,.1f} million events: one minute",
        "snapshots, from which only the rest is replayed",
    )
    yield (
        "one exam process",
        f"{3600 * 1000 / value('exam question'):,.0f} questions an hour",
        "`--engine ray`: by the number of cores",
    )


def fleet_rows(seed: int) -> Iterator[str]:
    """What fleets do where every trainer has a core, and what they did on two."""
    model = 1000 * value("lesson of a model") / value("lesson")
    alone = fleet(1, seed)[0], fleet(1, seed, model)[0]
    yield (
        "| trainers | rules: turns a second | times one | turn held | following in the queue "
        "| model: lessons an hour | times one | turn held |"
    )
    yield "|" + " ---: |" * 8
    for trainers in FLEETS:
        (rules, held), (slow, kept) = fleet(trainers, seed), fleet(trainers, seed, model)
        early, _ = fleet(trainers, seed, early=True)
        yield (
            f"| {trainers:,} | {rules:,.0f} | {rules / alone[0]:.1f} | {held:.0%} | {early:,.0f} "
            f"| {slow * 3600 / value('lesson'):,.0f} | {slow / alone[1]:,.1f} | {kept:.1%} |"
        )
    yield "\n| on two cores | trainers | turns a second, measured | simulated | too high by |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    acts = 1 - 3 / value("turns of rules")
    for (what, thinks), rates in MEASURED.items():
        for trainers, rate in rates.items():
            most = 2_000 / (value("processor") + (trainers - 1) * value("following"))
            made = min(fleet(trainers, seed, thinks * acts)[0], most)
            bound = ", by the cores" if made == most else ""
            yield f"| {what} | {trainers} | {rate:,.0f} | {made:,.0f}{bound} | {made / rate - 1:+.0%} |"


def hours(seconds: float, of: str) -> str:
    for unit, length in (("days", DAY), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {of}{'-' if of else ''}{unit}"
    return f"{seconds:,.1f} {of}{'-' if of else ''}seconds"


def amount(size: float) -> str:
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= length:
            return f"{size / length:,.1f} {unit}"
    return f"{size / 1e3:,.1f} KB"


def tables(price: float | None = None, seed: int = 0) -> str:
    """The tables, as Markdown."""
    lines = ["| constant | value | | where from |", "| --- | ---: | --- | --- |"]
    for name, known in CONSTANTS.items():
        shown = known.value if name != "price" or price is None else price
        lines.append(f"| {name} | {shown:,g} {known.unit} | {known.kind} | {known.where} |")
    columns = [list(rows(size, seed, value("price") if price is None else price)) for size in SIZES]
    lines += ["", "| | " + " | ".join(size.name for size in SIZES) + " |", "| --- " + "| ---: " * len(SIZES) + "|"]
    lines += [
        "| " + " | ".join([what[0][0], *(cell for _, cell in what)]) + " |" for what in zip(*columns, strict=True)
    ]
    lines += ["", "| seam | breaks at | next |", "| --- | --- | --- |"]
    lines += ["| " + " | ".join(line) + " |" for line in breaks(seed)]
    return "\n".join([*lines, "", *fleet_rows(seed)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--price", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fleet", action="store_true")
    chosen = parser.parse_args()
    print("\n".join(fleet_rows(chosen.seed)) + "\n" if chosen.fleet else tables(chosen.price, chosen.seed), end="")


if __name__ == "__main__":
    main()
