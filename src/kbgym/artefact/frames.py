"""Values as a table for analysis, in whichever library of tables is installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from typing import Any

import msgspec

from kbgym.errors import Missing

LIBRARIES = ("pandas", "polars")
_LEFT_OUT = ("shots",)  # the steps of a pass are no column; they are on the rows themselves


def frame(values: Iterable[msgspec.Struct], **columns: Sequence[Any]) -> Any:
    """A pandas frame, else a polars one: a row for every value, a column for every field; further columns first."""
    for name in LIBRARIES:
        if find_spec(name) is not None:
            added = ({name: column[at] for name, column in columns.items()} for at in count())
            return import_module(name).DataFrame([{**next(added), **_plain(value)} for value in values])
    raise Missing("a frame needs pandas or polars; run `pip install pandas`.")


def _plain(value: msgspec.Struct) -> dict[str, Any]:
    fields = zip(value.__struct_encode_fields__, msgspec.structs.astuple(value), strict=True)
    return {name: msgspec.to_builtins(field) for name, field in fields if name not in _LEFT_OUT}
