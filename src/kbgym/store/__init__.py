"""Documents, links and provenance: the thing that is trained."""

from kbgym.store.ledger import Ledger, ledger
from kbgym.store.record import Record, source
from kbgym.store.store import Linking, Refused, Store

__all__ = ["Ledger", "Linking", "Record", "Refused", "Store", "ledger", "source"]
