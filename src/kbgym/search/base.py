"""Search kinds. Settings and command-line options import this module, so it loads no numpy."""

from __future__ import annotations

from typing import Literal, get_args

from kbgym.errors import BadInput

SearchKind = Literal["vectors", "words", "hybrid"]  # `vectors` is the paper's protocol
SEARCHES: tuple[SearchKind, ...] = get_args(SearchKind)


def search_named(name: object) -> SearchKind:
    """Return the kind of search of this name. Raise `BadInput` if there is none."""
    found = next((search for search in SEARCHES if search == name), None)
    if found is None:
        raise BadInput(f"there is no search by {name!r}; use {', '.join(SEARCHES[:-1])} or {SEARCHES[-1]}.")
    return found
