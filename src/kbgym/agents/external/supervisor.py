"""Stands above an agent's process on Linux, and ends whatever it leaves: also what left its process group.

    python -I -S keeper.py REPORT ARGUMENTS...

Orphans below it become its children, wherever they went, so nothing that was started can get away. It is a script of
its own that loads nothing of kbgym: it is started for every pass. To the file descriptor REPORT it writes why the
command could not be started; nothing means that it was. It ends as the command ended.
"""

# ruff: noqa: SIM105 - contextlib is a fifth of what it takes to start

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

_SUBREAPER = 36  # of prctl
_POLITE = 1.0  # seconds between being asked to end and being ended
_ROUNDS = 500


class _Asked(Exception):
    """Somebody wants it to end."""


def _asked(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Asked


def keep(report: int, arguments: list[str]) -> int:
    """The status with which the command ended."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(report, False)
    status = 0
    try:
        signal.signal(signal.SIGTERM, _asked)
        try:
            # Python ignores these two, and what is ignored stays so in a program that is started.
            usual = (signal.SIGPIPE, signal.SIGXFSZ)
            child = os.posix_spawnp(arguments[0], arguments, os.environ, setsigdef=usual)
        except OSError as error:
            os.write(report, str(error.errno).encode())
            return 127 << 8
        os.close(report)
        ended = -1
        while ended != child:
            ended, status = os.wait()  # orphans are waited for too
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except _Asked:
        status = signal.SIGKILL
        for process in _below():
            _send(process, signal.SIGTERM)
        until = time.monotonic() + _POLITE
        while _below() and time.monotonic() < until:
            _reap()
            time.sleep(0.01)
    for _ in range(_ROUNDS):
        if not (left := _below()):
            break
        for what in (signal.SIGSTOP, signal.SIGKILL):  # what is stopped starts nothing while the others are ended
            for process in left:
                _send(process, what)
        _reap()
        time.sleep(0.002)
    return status


def _below() -> list[int]:
    """Every process that descends from this one and is not over."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:  # it is over
                continue
            if state != b"Z" or int(parent) != os.getpid():
                children.setdefault(int(parent), []).append(int(name))
    found = [os.getpid()]
    for process in found:
        found += children.get(process, [])
    return found[1:]


def _send(process: int, what: signal.Signals) -> None:
    try:
        os.kill(process, what)
    except (ProcessLookupError, PermissionError):
        pass


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    ended = keep(int(sys.argv[1]), sys.argv[2:])
    if os.WIFSIGNALED(ended):
        if os.WTERMSIG(ended) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(ended), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(ended))
    os._exit(os.WEXITSTATUS(ended))
