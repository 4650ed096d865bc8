"""Exam headers: a small file beside the rows of an exam, written before the first row.

    exams/flat-test_in.jsonl         the rows
    exams/flat-test_in.exam.json     store, world, agent, set, budget, search, observations

Exams are found by their headers, independently of file names. Rows of earlier versions have no header and stay
readable; they are identified by name only.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kbgym.agents.external.command_line import is_command
from kbgym.agents.llm.connect import is_model
from kbgym.agents.llm.prompting import prompt_hash
from kbgym.agents.trust import PLAYED_LIVE
from kbgym.canonical import digest_of, pretty, read_value, write_whole
from kbgym.errors import BadInput
from kbgym.gym.environment import Ranking
from kbgym.gym.observations import Observations
from kbgym.search.base import SearchKind
from kbgym.store import Store
from kbgym.training.run import Settings
from kbgym.worlds.world import Question

_ENDING = ".exam.json"
# The settings of an exam.
HOW = ("forward_budget", "memory", "embedder", "search", "ranking", "observations")
_NO_ROWS = (".cassette.jsonl",)


class ExamHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of an exam. `store`, `world` and `questions` are hashes; `iteration` is that of the store.

    `arm` is the baseline that built the store, `flat` for a trained or an untouched one. `prompt` is the hash of the
    reader's prompt if a model or a program reads; exams are compared only if it is the same. `conversation` is the id
    of a session of an agent that remembers earlier questions; independent passes have none.
    """

    kbgym: int = 1
    store: str
    iteration: int
    arm: str
    world: str
    agent: str
    set: str
    questions: str
    forward_budget: int
    memory: int
    embedder: str
    search: SearchKind
    ranking: Ranking
    observations: Observations
    prompt: str | msgspec.UnsetType = msgspec.UNSET
    conversation: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def conditions(self) -> dict[str, object]:
        """Return the conditions that two exams must share, besides the questions, to be comparable.

        Every conversation is a separate condition.
        """
        own = ("store", "iteration", "arm", "set", "questions", "kbgym")
        all = msgspec.structs.asdict(self).items()
        return {name: value for name, value in all if name not in own and value is not msgspec.UNSET}

    @property
    def plan(self) -> ExamHeader:
        """Return the header without the identity of a conversation."""
        return self if self.conversation is msgspec.UNSET else msgspec.structs.replace(self, conversation="any")

    @property
    def name(self) -> str:
        """Return the name of its file in a run."""
        store = self.arm if self.arm != "flat" else "trained" if self.iteration else "flat"
        return f"{store}-{re.sub(r'[^A-Za-z0-9_.@]+', '_', self.set)[:100]}"


class KeptExam(msgspec.Struct, frozen=True):
    """A file of rows and its header."""

    file: Path
    header: ExamHeader


def header_of(
    store: Store, iteration: int, arm: str, world: str, agent: str, set: str, asked: Sequence[Question], how: Settings
) -> ExamHeader:
    one = agent in (PLAYED_LIVE, "hand")
    told = one or is_model(agent) or is_command(agent)
    return ExamHeader(
        store=store.fingerprint,
        iteration=iteration,
        arm=arm,
        world=world,
        agent=agent,
        set=set,
        questions=digest_of([(question.id, question.text, question.golds) for question in asked]),
        prompt=prompt_hash("retrieval") if told else msgspec.UNSET,
        conversation=secrets.token_hex(6) if one else msgspec.UNSET,
        **{name: getattr(how, name) for name in HOW},
    )


def header_file(rows: Path) -> Path:
    return rows.with_name(f"{rows.stem}{_ENDING}")


def read_header(rows: Path) -> ExamHeader | None:
    """Return the header of a file of rows, or None."""
    file = header_file(rows)
    return read_value(file, ExamHeader) if file.is_file() else None


def check_header(rows: Path, header: ExamHeader) -> bool:
    """Return True if the file is empty. Raise BadInput if it holds another exam."""
    if not rows.exists() or not rows.stat().st_size:
        return True
    found = read_header(rows)
    for name, old in msgspec.structs.asdict(found.plan).items() if found is not None else ():
        if (new := getattr(header.plan, name)) != old:
            raise BadInput(f"{rows} holds an exam with {name} {_short(old)}, not {_short(new)}; choose another file.")
    return False


def claim(rows: Path, header: ExamHeader) -> None:
    """Write the header of an exam before its first row."""
    if check_header(rows, header):
        with write_whole(header_file(rows)) as scratch:
            scratch.write_text(pretty(header), encoding="utf-8")


def place_for(folder: Path, header: ExamHeader) -> Path:
    """Return the file of an exam in a folder: the one with this header, else a new one with a unique name."""
    for kept in kept_exams(folder):
        if kept.header.plan == header.plan:
            return kept.file
    plain = folder / f"{header.name}.jsonl"
    return folder / f"{header.name}.{digest_of(header)[:8]}.jsonl" if plain.exists() else plain


def kept_exams(folder: Path) -> list[KeptExam]:
    """Return every exam of a folder that has a header, ordered by name."""
    found = [(file, read_header(file)) for file in exam_files(folder)]
    return [KeptExam(file, header) for file, header in found if header is not None]


def exam_files(folder: Path) -> list[Path]:
    """Return the files of rows in a folder, without cassettes."""
    return [file for file in sorted(folder.glob("[!.]*.jsonl")) if not file.name.endswith(_NO_ROWS)]


def _short(value: object) -> str:
    """Shorten a hash for display."""
    return f"{value:.12}" if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) else str(value)
