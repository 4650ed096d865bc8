"""The exception hierarchy of kbgym, with the exit status of each class.

    KbgymError
    ├── BadInput        invalid request: a flag, a file or a folder.                         exit 2
    │   ├── InUse       another process is writing to the store.                             exit 2
    │   └── Damaged     a stored file was changed: torn, edited or out of order.             exit 2
    │       └── Incomplete   a stored file lacks committed data.                             exit 1
    ├── Missing         an optional dependency is missing; the message names the command.    exit 2
    └── Failed          the request was valid, but the work could not be finished.           exit 1

An agent's mistake (an unknown id, an empty text) raises none of these: it becomes an observation, see
`tools.py`. A message is one sentence that names the problem and, where known, the remedy.
"""

from __future__ import annotations


class KbgymError(Exception):
    """Base class of all errors that kbgym reports to the user."""

    exit_code = 1


class BadInput(KbgymError):
    """An invalid request: a flag, a file or a folder."""

    exit_code = 2


class InUse(BadInput):
    """Another process is writing to the store."""


class Damaged(BadInput):
    """A stored file was changed: torn, edited or out of order."""


class Incomplete(Damaged):
    """A stored file lacks committed data."""

    exit_code = 1


class Missing(KbgymError):
    """An optional dependency is missing; the message names the command."""

    exit_code = 2


class Failed(KbgymError):
    """The request was valid, but the work could not be finished."""

    exit_code = 1
