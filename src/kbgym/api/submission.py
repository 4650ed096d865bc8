"""Submissions: an exam as one file that anyone can verify.

    submission.json     the header of the exam and a hash of every other file
    rows.jsonl          the rows, with every action of every pass
    asked.jsonl         the questions
    store/...           the initial documents of the store and its trace
    world/...           the world, if the store does not hold it

Verification repeats the exam without the reader: the store is rebuilt from its trace, every action of every row is
applied to it and must give the recorded result, and every answer is graded again. It cannot verify that the
answers were unknown to the reader, its name, its token usage, or settings without an effect on any result.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from kbgym import canonical
from kbgym.api.workspace import Workspace
from kbgym.errors import BadInput, Damaged, Failed
from kbgym.gym.actions import Action, Answer
from kbgym.gym.policy import Forward, View
from kbgym.progress import ProgressCallback
from kbgym.training.exam import Row, read_rows
from kbgym.training.exam_header import HOW, ExamHeader, read_header
from kbgym.worlds.world import Question

_ABOUT, _ROWS, _ASKED = "submission.json", "rows.jsonl", "asked.jsonl"
_WORLD = ("documents.jsonl", "questions.jsonl", "world.json")
_FILES = ("run.json", "records.jsonl", "arm.json", "trace.jsonl", "trace.head")
_STORE = (*_FILES, *_WORLD, *(f"world/{name}" for name in _WORLD))
_MOST = 4 << 30  # maximum uncompressed size in bytes


class Submission(msgspec.Struct, frozen=True):
    """The head of the file; `files` are hashes by name, `seal` is the hash of header and files."""

    header: ExamHeader
    files: dict[str, str]
    seal: str
    kbgym: int = 1


class Checked(msgspec.Struct, frozen=True):
    """A verified submission: its recomputed rows, and whether its questions are a split of its world."""

    header: ExamHeader
    rows: list[Row]
    is_split: bool


def pack(rows: Path, store: str, world: Path | None, out: Path) -> Submission:
    """Write an exam of a store as one file. Raise BadInput if rows are missing or of another store."""
    header, done = read_header(rows), read_rows(rows)
    if header is None:
        raise BadInput(f"{rows} does not say what was examined; sit the exam again with this version.")
    if failed := [row.id for row in done if row.outcome == "agent_failed"]:
        raise BadInput(f"in {rows} the agent itself failed on {failed[0]}; sit the exam again, which asks only that.")
    with _opened(Path(store), world, header) as opened:
        if opened.folder is None:
            raise BadInput(f"{opened.name} is a database; export the store to a folder first.")
        if opened.store.fingerprint != header.store:
            raise BadInput(f"the exam in {rows} was sat on another store than {opened.name}.")
        asked = _asked(opened, header, done)
        folder, own = opened.folder, opened.world
    with tempfile.TemporaryDirectory() as scratch:
        files = {f"store/{name}": folder / name for name in _STORE if (folder / name).is_file()}
        if not any(name.endswith("questions.jsonl") for name in files) and own is not None:
            own.save(Path(scratch) / "world")
            files |= {f"world/{name}": Path(scratch) / "world" / name for name in _WORLD}
        files[_ASKED], files[_ROWS] = Path(scratch) / _ASKED, Path(scratch) / _ROWS
        canonical.write_lines(files[_ASKED], asked)
        canonical.write_lines(files[_ROWS], done)
        hashes = {name: canonical.digest(canonical.read_file(file)) for name, file in sorted(files.items())}
        about = Submission(header, hashes, canonical.digest_of([header, hashes]))
        with canonical.write_whole(out) as made, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr(zipfile.ZipInfo(_ABOUT), canonical.pretty(about))
            for name, file in sorted(files.items()):  # without dates, so that the same exam gives the same bytes
                packed.writestr(zipfile.ZipInfo(name), canonical.read_file(file), zipfile.ZIP_DEFLATED)
    return about


def check(file: Path, world_hash: str | None = None, tick: ProgressCallback | None = None) -> Checked:
    """Verify a submission. Raise Failed with the first difference."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        about = _unpacked(file, folder)
        header = about.header
        world = folder / "world" if (folder / "world").is_dir() else None
        if world_hash is not None and header.world != world_hash:
            raise Failed(f"{file} was examined on another world: {header.world[:12]}, not {world_hash[:12]}.")
        rows, asked = read_rows(folder / _ROWS), list(canonical.read_lines(folder / _ASKED, Question))
        with _opened(folder / "store", world, header) as opened:
            made = opened.exam_header(header.agent, asked, header.set)
            for name, claimed in msgspec.structs.asdict(header.plan).items():
                if getattr(made.plan, name) != claimed:
                    raise Failed(f"{file}: the {name} of the exam is not what it says.")
            _same(file, [row.id for row in rows], [question.id for question in asked], "questions")
            again = opened.examine(_again(rows), asked, tick=tick, alone=False).rows
            is_split = opened.world is not None and tuple(asked) == opened.world.split(header.set)
    for row, made_row in zip(rows, again, strict=True):
        claimed_row, done = msgspec.structs.asdict(row), msgspec.structs.asdict(made_row)
        done |= {name: claimed_row[name] for name in ("usage", "conversation")}  # these cannot be reproduced
        for name, value in claimed_row.items():
            _same(file, value, done[name], f"{name} of question {row.id}")
    return Checked(header, again, is_split)


def _again(rows: Iterable[Row]) -> Callable[[View], Action]:
    """Return a reader that repeats the actions of each question's row."""
    done = {row.question: [shot.action for shot in row.shots] for row in rows}

    def act(view: View) -> Action:
        assert isinstance(view.task, Forward)
        actions = done.get(view.task.question, ())
        return actions[len(view.history)] if len(view.history) < len(actions) else Answer("")

    return act


def _opened(store: Path, world: Path | None, header: ExamHeader) -> Workspace:
    """Open the store at the iteration of the exam, with its settings."""
    place = f"{store}@{header.iteration}" if (store / "trace.jsonl").exists() else str(store)
    return Workspace(place, world, **{name: getattr(header, name) for name in HOW})


def _asked(opened: Workspace, header: ExamHeader, rows: Sequence[Row]) -> list[Question]:
    """Return the questions of an exam in its order."""
    try:
        asked = list(opened.questions(header.set))
    except BadInput:
        asked = []
    if opened.exam_header(header.agent, asked, header.set).questions != header.questions:
        known = {question.id: question for question in opened.world.questions} if opened.world else {}
        asked = [known[row.id] for row in rows if row.id in known]
    if len(asked) != len(rows) or opened.exam_header(header.agent, asked, header.set).questions != header.questions:
        raise BadInput(f"these rows are not all of the exam of {header.set!r}; sit it to its end first.")
    return asked


def _unpacked(file: Path, folder: Path) -> Submission:
    """Unpack a submission. Raise Damaged or Failed if its files differ from those its head lists."""
    try:
        with zipfile.ZipFile(file) as packed:
            names = [one.filename for one in packed.infolist()]
            allowed = {_ABOUT, _ROWS, _ASKED, *(f"store/{name}" for name in _STORE), *(f"world/{n}" for n in _WORLD)}
            if len(set(names)) != len(names) or not {_ABOUT, _ROWS, _ASKED} <= set(names) <= allowed:
                raise Damaged(f"{file} is no submission: it has other files than a submission has.")
            if sum(one.file_size for one in packed.infolist()) > _MOST:
                raise BadInput(f"{file} would unfold to more than {_MOST >> 30} GiB.")
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(packed.read(name))
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
        raise Damaged(f"{file} is no submission: {error}.") from error
    about = canonical.read_value(folder / _ABOUT, Submission)
    canonical.check_name(file, about.header.set)
    hashes = {name: canonical.digest(canonical.read_file(folder / name)) for name in names if name != _ABOUT}
    if about.files != hashes or about.seal != canonical.digest_of([about.header, hashes]):
        raise Failed(f"{file}: its files are not those it was packed with.")
    return about


def _same(file: Path, claimed: object, made: object, what: str) -> None:
    if claimed != made:
        raise Failed(f"{file}: the {what}: claimed {str(claimed)[:80]!r}, done again {str(made)[:80]!r}.")
