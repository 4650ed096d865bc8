"""One process's hold on a store that others may be writing too: follow them, act, commit, one action a transaction.

It is plain and synchronous, and works on a folder as on a database. It does not search: whoever wants the guard against
near-duplicates hands in its verdict as advice. Whether a client has seen what it changes is the caller's to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kbgym.actions import Action, Answered, Error, Finished, Found, Opened, Result
from kbgym.environment import Advice, apply
from kbgym.errors import Failed
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Committed, Ended, Event
from kbgym.trace.place import Appender, Lost, Place, open_place, shown, store_at
from kbgym.trace.replay import Watcher, catch_up

_TRIES = 5

# Looks at the store as it is in this turn; what it returns is the answer, and nothing is done.
Objection = Callable[[Store], Error | None]


class SharedStore:
    """A store at its newest state. `place` says where it is, for reading it again."""

    def __init__(self, place: str, agent: str, embedder: str = "", watch: Watcher | None = None) -> None:
        self._place, self.agent, self._watch = place, agent, watch
        opened = open_place(place)
        if opened.genesis is None:
            opened.start(embedder, {}).close()
            opened.close()
            opened = open_place(place)
        self.writer: Appender = opened.resume()
        self._settle(opened)
        opened.close()

    def _settle(self, place: Place) -> None:
        self.store = place.store()
        self.iteration, self.position = place.iteration, place.position

    def follow(self, news: Sequence[Event] | None = None) -> None:
        """Take on what others committed, as far as it is known: by default, everything."""
        events = self.writer.news() if news is None else news
        if not events:
            return
        self.store = catch_up(self.store, events, self.iteration, lambda to: store_at(self._place, to), self._watch)
        last = events[-1]
        if isinstance(last, Committed):
            self.iteration, self.position = last.iteration, last.position

    def act(self, action: Action, advice: Advice = None, objection: Objection | None = None) -> Result:
        """Carry out one checked action on the newest state; an edit is durable on return.

        A connection that broke before the commit is no reason to give up: nothing happened, so it is done again.
        """
        for _ in range(_TRIES):
            try:
                return self._act(action, advice, objection)
            except Lost:
                self._again()
            except Exception:
                self._again()
                raise
        raise Failed(f"{shown(self._place)}: the connection broke {_TRIES} times while one action was committed.")

    def _act(self, action: Action, advice: Advice, objection: Objection | None) -> Result:
        with self.writer.turn() as news:
            self.follow(news)
            refused = objection(self.store) if objection else None
            if refused is not None:
                return refused
            result = apply(self.store, action, advice)
            if isinstance(result, Error | Found | Opened | Answered | Finished):
                return result
            number = self.iteration + 1
            commit = Committed(number, self.position, self.store.fingerprint, len(self.store), self.store.links)
            self.writer.commit(
                [
                    Began(number, "serve", self.agent),
                    Acted(number, "serve", 1, action, result),
                    Ended(number, "serve", "done"),
                    commit,
                ]
            )
        self.iteration = number
        return result

    def _again(self) -> None:
        """What was done here was not kept there: read the store as it is, and go on from that."""
        place = open_place(self._place)
        self.writer.rejoin(place)
        self._settle(place)
        place.close()

    def close(self) -> None:
        self.writer.close()
