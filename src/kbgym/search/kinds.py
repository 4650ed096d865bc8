"""What a search can go by. Apart from the rest, since settings and options name it where nothing is searched."""

from typing import Literal, get_args

SearchKind = Literal["vectors", "words", "hybrid"]  # `vectors` is the paper's protocol
SEARCHES: tuple[SearchKind, ...] = get_args(SearchKind)
