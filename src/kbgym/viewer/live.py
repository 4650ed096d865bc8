"""A run in progress, followed from outside: the trace's committed lines since the last poll.

Nothing is verified or replayed here, so a poll costs only its new lines. The page shows what its writer
acknowledged; the hash chain is checked by the writer and by `kbgym store replay`.
"""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import Decoder, open_file
from kbgym.gym.actions import EDITS, Error
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Graded, RolledBack
from kbgym.training.exam_header import exam_files
from kbgym.viewer import picked
from kbgym.viewer.places import ViewedPlace

RECENT = 30
_decoder: Decoder[Event] = Decoder(Event)


class Follower:
    """Follows one trace. `look` continues where the previous call ended."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace
        self._lock = threading.Lock()
        self._restart()

    def _restart(self) -> None:
        self._offset = 0
        self._open: list[Any] = []
        self.iteration = self.position = self.documents = self.links = self.actions = 0
        self.recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self.points: list[list[float]] = []
        self._grades: deque[float] = deque(maxlen=20)

    def look(self) -> None:
        with self._lock:
            size = self.trace.stat().st_size if self.trace.exists() else 0
            if size < self._offset:  # an unfinished transaction was cut off, or the trace was replaced
                self._restart()
            if size == self._offset:
                return
            with open_file(self.trace) as file:
                file.seek(self._offset)
                data = file.read(size - self._offset)
            whole = data[: data.rfind(b"\n") + 1]
            for line in whole.splitlines():
                try:
                    event = _decoder.decode(line)
                except msgspec.DecodeError:
                    continue  # `kbgym store replay` reports damage
                self._open.append(event)
                if isinstance(event, Committed):
                    self._commit(event)
            self._offset += len(whole)

    def _commit(self, commit: Committed) -> None:
        passes = [event for event in self._open if isinstance(event, Began)]
        acts = [event for event in self._open if isinstance(event, Acted)]
        grades = [event for event in self._open if isinstance(event, Graded)]
        rollback = next((event for event in self._open if isinstance(event, RolledBack)), None)
        ends = [event for event in self._open if isinstance(event, Ended) and event.phase != "backward"]
        self.iteration, self.position = commit.iteration, commit.position
        self.documents, self.links = commit.documents, commit.links
        self.actions += len(acts)
        self._grades.extend(grade.f1 for grade in grades)
        text = passes[0].text if passes else f"rolled back to iteration {rollback.to}" if rollback else ""
        self.recent.append(
            {
                "iteration": commit.iteration,
                "text": text,
                "phase": passes[0].phase if passes else "",
                "answer": grades[0].answer if grades else None,
                "golds": grades[0].golds if grades else (),
                "f1": grades[0].f1 if grades else None,
                "outcome": ends[0].outcome if ends else "",
                "steps": sum(act.phase != "backward" for act in acts),
                "edits": sum(type(act.result) in EDITS for act in acts),
                "errors": sum(isinstance(act.result, Error) for act in acts),
                "links": commit.links,
                "documents": commit.documents,
            }
        )
        mean = sum(self._grades) / len(self._grades) if self._grades else 0.0
        self.points.append([commit.iteration, commit.links, commit.documents, round(mean, 4)])
        self._open = []

    def values(self, total: int) -> dict[str, Any]:
        every = max(1, -(-len(self.points) // 400))
        thinned = [*self.points[:-1:every], *self.points[-1:]]
        return {
            "bytes": self._offset,
            **picked(self, "iteration", "position"),
            "total": total,
            **picked(self, "documents", "links", "actions"),
            "f1": sum(self._grades) / len(self._grades) if self._grades else None,
            "recent": list(reversed(self.recent)),
            "points": thinned,
        }


class Live:
    """Every training of every place, followed from its first request on."""

    def __init__(self) -> None:
        self._followers: dict[Path, Follower] = {}
        self._lock = threading.Lock()

    def look(self, place: ViewedPlace, seed: int) -> dict[str, Any]:
        found = []
        for arm, trained in place.trained(seed).items():
            settings = trained.settings
            found.append(self._one(arm, trained.label, Path(trained.where), settings.questions * settings.epochs))
        if place.kind == "store" and (place.folder / "trace.jsonl").exists():
            found.append(self._one("store", place.name, place.folder, 0))
        exams = [
            {"name": file.stem, "rows": file.read_bytes().count(b"\n")}
            for file in exam_files(place.base(seed) / "exams")
        ]
        return {"name": place.name, "kind": place.kind, "trainings": found, "exams": exams}

    def _one(self, arm: str, label: str, folder: Path, total: int) -> dict[str, Any]:
        with self._lock:
            follower = self._followers.setdefault(folder, Follower(folder / "trace.jsonl"))
        follower.look()
        return {"arm": arm, "label": label, **follower.values(total)}
