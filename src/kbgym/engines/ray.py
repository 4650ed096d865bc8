"""The Ray engine, which runs chunks of work in the processes of one machine or of a cluster.

Shared data is put into the object store once, sent once to each node, and unpacked once in each worker process; numpy
arrays are not copied. If a worker dies, only its chunk is run again. Without an address, a private cluster is started
on this machine with token authentication, without dashboard or usage statistics, and shut down at the end.
"""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from kbgym.errors import BadInput, Failed, KbgymError, Missing

RETRIES = 3  # retries of a chunk whose worker was lost
WAIT = 10.0  # connection timeout in seconds

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


class RayEngine:
    """A `WorkEngine`. `address` is `auto`, `HOST:PORT` or `ray://HOST:PORT`; None starts a private cluster."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # suppresses a deprecation warning
        os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # otherwise its messages may arrive after the end
        if address is None and "RAY_AUTH_MODE" not in os.environ and "ray" not in sys.modules:
            # A token for this process and its cluster; left to itself, Ray would keep one in the user's home. Once it
            # is loaded, Ray does not look again.
            os.environ["RAY_AUTH_MODE"] = "token"
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        import ray

        self._ray: Any = ray
        self._scratch: Path | None = None
        self._ours = not ray.is_initialized()
        if self._ours and address is not None:
            self._connect(address)
        elif self._ours:
            self._start(workers)
        self.workers = workers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        # A private cluster has this many worker slots; one more chunk is queued for each.
        self._under_way = self.workers * (2 if self._scratch else 1)
        self._task: Any = self._ray.remote(max_retries=RETRIES, num_cpus=1)(_task)

    def _start(self, workers: int | None) -> None:
        # It contains sockets, whose paths must be short.
        self._scratch = Path(tempfile.mkdtemp(prefix="kbgym-ray-", dir="/tmp" if os.path.isdir("/tmp") else None))
        try:
            self._init(address="local", num_cpus=workers, include_dashboard=False, _temp_dir=str(self._scratch))
        except Exception as error:  # Ray raises no more specific type
            self.close()
            raise Failed(f"Ray did not start on this machine: {_first_line(error)}") from error

    def _connect(self, address: str) -> None:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            if address != "auto":  # Ray itself retries for minutes
                socket.create_connection((host.strip("[]"), int(port)), timeout=WAIT).close()
            self._init(address=address)
        except ImportError as error:
            raise Missing(f"address {address} needs Ray's client; run `pip install 'kbgym[ray]'`.") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise BadInput(f"there is no Ray cluster at address {address}: {_first_line(error)}.") from error

    def _init(self, **options: Any) -> None:
        """Connect to Ray, retrying if a busy machine exceeds the 30 s timeout of Ray."""
        for left in (2, 1, 0):
            try:
                self._ray.init(log_to_driver=False, logging_level="error", **options)
                return
            except (ConnectionError, RuntimeError):
                self._ray.shutdown()
                if not left:
                    raise

    def run(self, work: Callable[[S, T], R], shared: S, items: Iterable[T]) -> Iterator[R]:
        ray, end = self._ray, object()
        # In a list, so that a task gets the reference instead of a new copy of the value.
        box = [ray.put(shared)]
        queue = iter(items)
        waiting: list[Any] = []
        try:
            while True:
                while len(waiting) < self._under_way and (item := next(queue, end)) is not end:
                    waiting.append(self._task.remote(work, version("kbgym"), box, item))
                if not waiting:
                    return
                (ready,), waiting = ray.wait(waiting, num_returns=1)
                yield self._result(ready)
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)

    def _result(self, reference: Any) -> Any:
        lost = self._ray.exceptions
        try:
            found = self._ray.get(reference)
        except (lost.WorkerCrashedError, lost.NodeDiedError, lost.ObjectLostError, lost.OutOfMemoryError) as error:
            what = f"a piece of work lost its Ray worker {RETRIES + 1} times ({_first_line(error)})"
            raise Failed(f"{what}; what was finished is kept, run the same command again to go on.") from error
        except lost.RayError as error:
            cause = getattr(error, "cause", None) or error
            raise Failed(f"a Ray worker failed: {type(cause).__name__}: {_first_line(cause)}") from error
        if isinstance(found, KbgymError):
            raise found
        return found

    def close(self) -> None:
        """Disconnect, and shut down a private cluster."""
        if self._ours:
            self._ray.shutdown()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


# -- in a worker ------------------------------------------------------------------------------------------------------

_held: dict[str, Any] = {}  # the shared data of the chunks in this process, one value at a time


def _task(work: Callable[[Any, Any], Any], ours: str, box: list[Any], item: Any) -> Any:
    """Run one chunk. Return errors for the user as values, since Ray would wrap them in a traceback."""
    try:
        return work(_shared(box[0], ours), item)
    except KbgymError as error:
        return error


def _shared(reference: Any, ours: str) -> Any:
    key = reference.hex()
    if key not in _held:
        import ray

        if (theirs := version("kbgym")) != ours:
            raise BadInput(f"the Ray workers have kbgym {theirs}, not {ours}; install the same version there.")
        _held.clear()
        _held[key] = ray.get(reference)
        gc.freeze()  # permanent data, which the garbage collector, often run by Ray, can skip
    return _held[key]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
