"""Every error kbgym raises on purpose, and what each one means to the person who sees it.

    KbgymError
    ├── BadInput        what was asked cannot be done as asked: a flag, a file, a folder.    exit 2
    │   ├── InUse       another process writes the store.                                    exit 2
    │   └── Damaged     a stored file is not what was written: torn, edited, out of order.   exit 2
    │       └── Incomplete   a stored file lacks what was once committed to it.              exit 1
    ├── Missing         an optional part is not installed; the message says what to run.     exit 2
    └── Failed          the request was fine, the work could not be finished.                exit 1

An agent's mistake (an unknown id, an empty text) is none of these: it is an observation the agent reads, see
`tools.py`. Messages are one sentence, name the thing that is wrong, and say what to do where that is known.
"""

from __future__ import annotations


class KbgymError(Exception):
    """The root: catching it catches everything kbgym means to tell a user, and nothing else."""

    exit_code = 1


class BadInput(KbgymError):
    exit_code = 2


class InUse(BadInput):
    pass


class Damaged(BadInput):
    pass


class Incomplete(Damaged):
    exit_code = 1


class Missing(KbgymError):
    exit_code = 2


class Failed(KbgymError):
    exit_code = 1
