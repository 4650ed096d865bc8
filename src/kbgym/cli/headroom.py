"""`kbgym experiment run headroom`: how much a flat store leaves to gain in a small universe and in a large one.

    EXP/people-120/seed-0/    a world of each size and seed
    EXP/exams/                an exam of its documents as they are, each
    EXP/headroom.json         what they come to, by size and kind of question

As the paper chose its size: chains that search alone can follow, beside classes that need a relation as a whole.
"""

from __future__ import annotations

from pathlib import Path

from kbgym.analysis.gradient import shared_keys
from kbgym.analysis.headroom import MEASURES, Examined, add, counted, means
from kbgym.api import open
from kbgym.api.factory import CASSETTE
from kbgym.canonical import pretty, write_whole
from kbgym.cli.common import Printed, progress
from kbgym.cli.spending import Spending
from kbgym.training.exam import read_rows
from kbgym.worlds import people
from kbgym.worlds.world import World

FILE = "headroom.json"
SIZES = (120, 500)
SET = "test_in"


def headroom(out: Path, seeds: tuple[int, ...], agent: str, embedder: str, hard: bool, spending: Spending) -> Printed:
    """Every exam that is not there yet, then the means; run again, it does what is missing."""
    places = [(size, seed, out / f"people-{size}" / f"seed-{seed}") for size in SIZES for seed in seeds]
    for size, seed, place in places:
        if not place.exists():
            people.generate(size, seed, hard=hard).save(place)
    files = {place: out / "exams" / f"people-{size}-seed-{seed}.jsonl" for size, seed, place in places}
    asked = {place: len(World.load(place).split(SET)) for place in files}
    spending.confirm(agent, {"exam": sum(asked[place] - len(read_rows(files[place])) for place in files)})
    found: Examined = {}
    for size, _, place in places:
        file = files[place]
        with open(place, embedder=embedder) as opened:
            cassette = file.with_name(f"{file.stem}.{CASSETTE}")
            with spending.models([agent], cassette) as models, progress(f"exam {file.stem}") as tick:
                exam = opened.examine(agent, SET, out=file, models=models, tick=tick)
        add(found, size, exam.rows, shared_keys(World.load(place)))
    cells, n = means(found), counted(found)
    result = {"agent": agent, "seeds": list(seeds), "n": n, "cells": cells}
    with write_whole(out / FILE) as scratch:
        scratch.write_text(pretty(result), encoding="utf-8")
    lines = [f"By {agent} on stores nobody trained, {len(seeds)} seed{'s' if len(seeds) > 1 else ''}:"]
    for name in found:
        people_of, kind = name.split("/")
        what = "chains of documents" if kind == "chains" else "relations as a whole"
        f1, actions = (cells[f"headroom/{name}/{field}"]["text"] for field in MEASURES)
        lines.append(f"  {people_of} people, {what:20} n = {n[name]:4}: F1 {f1}, {actions} actions")
    return result, lines
