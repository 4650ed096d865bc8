"""A run in progress, followed from outside: the trace's committed lines since the last poll.

Nothing is verified or replayed here, so a poll costs only its new lines. The page shows what its writer
acknowledged; the hash chain is checked by the writer and by `kbgym store replay`.
"""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from kbgym.canonical import Decoder, open_file
from kbgym.trace.events import Acted, Event
from kbgym.trace.history import Entry, log
from kbgym.training.exam_header import exam_files
from kbgym.viewer import picked, thinned
from kbgym.viewer.places import ViewedPlace
from kbgym.viewer.questions import iterations

RECENT = 30
_decoder: Decoder[Event] = Decoder(Event)


class Follower:
    """Follows one trace. `look` continues where the previous call ended."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace
        self._lock = threading.Lock()
        self._offset = 0
        self._events: list[Event] = []

    def look(self) -> None:
        with self._lock:
            size = self.trace.stat().st_size if self.trace.exists() else 0
            if size < self._offset:  # an unfinished transaction was cut off, or the trace was replaced
                self._offset, self._events = 0, []
            if size == self._offset:
                return
            with open_file(self.trace) as file:
                file.seek(self._offset)
                data = file.read(size - self._offset)
            whole = data[: data.rfind(b"\n") + 1]
            for line in whole.splitlines():
                try:
                    self._events.append(_decoder.decode(line))
                except msgspec.DecodeError:
                    continue  # `kbgym store replay` reports damage
            self._offset += len(whole)

    def values(self, total: int) -> dict[str, Any]:
        """Return the state after the last commit, the latest iterations, and the growth."""
        entries, grades = log(self._events), deque[float](maxlen=20)
        points = []
        for entry in entries:
            grades.extend([] if entry.f1 is None else [entry.f1])
            mean = round(fmean(grades), 4) if grades else 0.0
            points.append([entry.commit, entry.links, entry.documents, mean])
        last = entries[-1] if entries else Entry(0, 0, 0, 0, 0)
        return {
            **picked(last, "position", "documents", "links"),
            "iteration": last.commit,
            "bytes": self._offset,
            "total": total,
            "actions": sum(isinstance(event, Acted) for event in self._events),
            "f1": fmean(grades) if grades else None,
            "recent": iterations(self._events, {})[: -RECENT - 1 : -1],
            "points": thinned(points),
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
