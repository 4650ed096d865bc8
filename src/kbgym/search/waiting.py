"""Whose text is embedded next, where several wait. It knows texts and who wants them, and nothing of vectors."""

from __future__ import annotations

from collections.abc import Iterable

# A text of so many characters takes ten times as long as a query usually does. Only one thread at a time works on such:
# another is free for whoever asks in a few words.
LONG = 300


class FairQueue:
    """Texts that wait, by who wants them. Whoever has had least so far comes first, each with the oldest it wants.

    What an owner has had is counted in characters, as that is what a text costs; it is forgotten once nobody waits.
    """

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, None]] = {}
        self._had: dict[str, int] = {}

    def add(self, text: str, owner: str) -> None:
        if owner not in self._texts:
            # Somebody who comes back has saved up no more than this one turn.
            least = min((self._had[one] for one in self._texts), default=1)
            self._had[owner] = max(self._had.get(owner, 0), least - 1)
        self._texts.setdefault(owner, {})[text] = None

    def __bool__(self) -> bool:
        return bool(self._texts)

    def first(self, most: int, short: bool = False) -> list[str]:
        """So many texts, in the order in which they should be had; of the short ones only, where that is asked."""
        owners = sorted(self._texts, key=self._had.__getitem__)
        queues = [(text for text in self._texts[owner] if not short or len(text) < LONG) for owner in owners]
        found: dict[str, None] = {}
        while queues and len(found) < most:
            left = []
            for queue in queues:
                if (text := next(queue, None)) is not None:
                    found[text] = None
                    left.append(queue)
            queues = left
        return list(found)[:most]

    def take(self, texts: Iterable[str]) -> None:
        """These are being worked out, at the cost of everybody who wants them."""
        for text in texts:
            for owner in [owner for owner, wanted in self._texts.items() if text in wanted]:
                del self._texts[owner][text]
                self._had[owner] += len(text) + 1
                if not self._texts[owner]:
                    del self._texts[owner]
        if not self._texts:
            self._had.clear()
