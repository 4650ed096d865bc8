"""An experiment in parts, one for every seed and arm or training, on an engine whose machines need share no disk.

A part is worked on in a scratch folder that holds the seed's world and groups and whatever there is of the part; the
files it wrote are sent back and put into the experiment's folder, whole. So a part cut short is begun again, and the
rest stays as it is. It does not know what an arm is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from kbgym.canonical import atomic_dir, write_whole
from kbgym.experiments.engines import WorkEngine
from kbgym.experiments.experiment import Plan, Prepare, SeedRun, StatusCallback, seed_folder

Files = Mapping[str, bytes]  # by path below a seed's folder
NOTHING = ""  # the part that is only the world and the groups
TIMING = "timing.jsonl"


class Ground(msgspec.Struct, frozen=True):
    """What all parts share: the plan, how an arm is made, and every seed's world and groups."""

    plan: Plan
    prepare: Prepare
    seeds: dict[int, dict[str, bytes]]


class Part(msgspec.Struct, frozen=True):
    """One arm or training of one seed, with its files: those that exist when it is sent, those it wrote in return."""

    seed: int
    name: str
    files: dict[str, bytes]


def run_parts(
    engine: WorkEngine, folder: Path, plan: Plan, prepare: Prepare, tick: StatusCallback | None = None
) -> None:
    """Everything of an experiment that is not there yet; the files are those that `run_seed` would write."""
    ground: dict[int, dict[str, bytes]] = {}
    for seed in plan.seeds:
        place = seed_folder(folder, seed)
        SeedRun(place, plan, seed, prepare, lambda note: None).run(NOTHING)
        ground[seed] = _read(place, ("world/**/*", "probe/**/*"))

    def parts() -> Iterator[Part]:
        # Trainings first: they take longest.
        for name in (*(training.name for training in plan.trainings), *plan.arms):
            for seed in plan.seeds:
                yield Part(seed, name, _read(seed_folder(folder, seed), _patterns(name)))

    for done in engine.run(run_part, Ground(plan, prepare, ground), parts()):
        _land(seed_folder(folder, done.seed), done.name, done.files)
        if tick:
            tick(f"seed {done.seed}: {done.name}")


def run_part(ground: Ground, part: Part) -> Part:
    """One part, in whatever process this is."""
    before = {**ground.seeds[part.seed], **part.files}
    with tempfile.TemporaryDirectory(prefix="kbgym-part-") as scratch:
        place = Path(scratch)
        _write(place, before)
        SeedRun(place, ground.plan, part.seed, ground.prepare, lambda note: None).run(part.name)
        after = _read(place, ("**/*",))
    changed = {path: data for path, data in after.items() if before.get(path) != data}
    return Part(part.seed, part.name, changed)


def _patterns(name: str) -> tuple[str, ...]:
    """Where the files of an arm or a training lie, below a seed's folder."""
    exams = (f"exams/{name}-*.jsonl", f"exams/{name}@*.jsonl", f"readers/*/exams/{name}-*.jsonl")
    return (f"{name}/**/*", f"arms/{name}.json", *exams)


def _read(place: Path, patterns: Iterable[str]) -> dict[str, bytes]:
    found = sorted({path for pattern in patterns for path in place.glob(pattern) if path.is_file()})
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in found}


def _write(place: Path, files: Files) -> None:
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)


def _land(place: Path, name: str, files: Files) -> None:
    """The run folder first and at once, then file by file; an arm's note last, because it says that all is there."""
    inside = f"{name}/"
    run = {path.removeprefix(inside): data for path, data in files.items() if path.startswith(inside)}
    if run and not (place / name).exists():
        with atomic_dir(place / name) as scratch:
            _write(scratch, run)
    else:
        for path, data in run.items():
            with write_whole(place / name / path) as file:
                file.write_bytes(data)
    others = [path for path in files if not path.startswith(inside) and path != TIMING]
    for path in sorted(others, key=lambda path: path.startswith("arms/")):
        with write_whole(place / path) as file:
            file.write_bytes(files[path])
    if TIMING in files:
        with (place / TIMING).open("ab") as out:
            out.write(files[TIMING])
