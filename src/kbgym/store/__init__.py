"""The store that training edits: documents, links and provenance."""

from kbgym.store.ledger import Ledger, ledger
from kbgym.store.record import Record, source
from kbgym.store.store import Refused, Store

__all__ = ["Ledger", "Record", "Refused", "Store", "ledger", "source"]
