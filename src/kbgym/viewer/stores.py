"""The store page's data: search as agents see it, the details of a document, and the index audit."""

from __future__ import annotations

from typing import Any

import msgspec

from kbgym.analysis.audit import Index
from kbgym.analysis.health import advice
from kbgym.analysis.index_use import account_if_examined, accounts, advised
from kbgym.errors import BadInput
from kbgym.gym.tools import MOST_TEXT, PAGE_SIZE
from kbgym.store import ledger
from kbgym.trace.history import Author
from kbgym.viewer import picked
from kbgym.viewer.places import ViewedPlace, ViewedStore

MOST_LISTED = 500  # links in or out shown at once; the count is complete
MOST_SUSPECTS = 10_000
PAGES = 4  # of an agent's results to show for a query


def brief(viewed: ViewedStore, id: str) -> dict[str, Any]:
    """Return a document as a line: id, text, kind."""
    found: dict[str, Any] = {"id": id, "text": viewed.text(id), "kind": viewed.kind_of(id)}
    if id in viewed.store:
        found["links"] = len(viewed.store[id].links)
        if by := viewed.store.superseded_by(id):
            found["superseded_by"] = list(by)
    return found


def corrections(viewed: ViewedStore) -> list[dict[str, Any]]:
    """Return the corrections that people taught, with the documents each supersedes."""
    found = [viewed.store[id] for id in viewed.store.corrections()]
    return [{**brief(viewed, one.id), "supersedes": [brief(viewed, id) for id in one.links]} for one in found]


def search(viewed: ViewedStore, query: str) -> dict[str, Any]:
    """Return the first pages an agent would see, in its order; an id finds its document first."""
    text = " ".join(query.split())[:MOST_TEXT]
    if not text:
        return {"query": "", "page": PAGE_SIZE, "hits": []}
    pages = [hit for page in range(1, PAGES + 1) for hit in viewed.search(text, page)]
    hits = [{**brief(viewed, hit.id), "score": hit.score, "source": _page(viewed, hit.id)} for hit in pages]
    named = brief(viewed, text) if text in viewed.store else None
    return {"query": text, "page": PAGE_SIZE, "hits": hits, "named": named}


def _page(viewed: ViewedStore, id: str) -> str:
    """Return the source page of a document, or "" if it has none."""
    record = viewed.store[id]
    return viewed.pages.get(record.origins[0], "") if record.origins else ""


def summary(viewed: ViewedStore) -> dict[str, Any]:
    """Return the ledger, the coverage and the largest indexes."""
    counts, share = msgspec.to_builtins(ledger(viewed.store)), msgspec.to_builtins(viewed.health.coverage)
    biggest = [brief(viewed, index.id) for index in viewed.health.biggest]
    start = biggest or [brief(viewed, record.id) for record, _ in zip(viewed.store, range(5), strict=False)]
    return {"label": viewed.label, "ledger": counts, "coverage": share, "start": start, "history": bool(viewed.events)}


def document(viewed: ViewedStore, id: str) -> dict[str, Any]:
    """Return everything about a document: links, provenance, source and history, also of a deleted one."""
    blame = viewed.blame(id) if id in viewed.store or viewed.events else None
    if id not in viewed.store and blame is None:
        raise BadInput(f"there is no document {id[:60]!r} in this store.")
    record = viewed.store[id] if id in viewed.store else None  # noqa: SIM401 - get rejects a missing key
    made = {link.target: link.by for link in blame.links} if blame else {}
    outgoing = record.links if record else ()
    incoming = viewed.store.inbound(id)
    found: dict[str, Any] = {
        **brief(viewed, id),
        "alive": record is not None,
        "flag": record.flag if record else "",
        "origins": [_origin(viewed, origin) for origin in (record.origins if record else ())],
        "out": [_link(viewed, id, target, target, made.get(target)) for target in outgoing[:MOST_LISTED]],
        "out_total": len(outgoing),
        "in": [_link(viewed, source, id, source, None) for source in incoming[:MOST_LISTED]],
        "in_total": len(incoming),
        "history": [_change(viewed, change) for change in blame.changes] if blame else [],
        "initial": blame.initial if blame else None,
        "opened": len(viewed.readings.get(id, ())),
        "audit": _index(viewed, viewed.indexes[id]) if id in viewed.indexes else None,
    }
    if record is None and blame is not None:
        last = next((change.text for change in reversed(blame.changes) if change.text), None)
        found["text"] = last or "(no longer in this store)"
    return found


def _origin(viewed: ViewedStore, origin: str) -> dict[str, Any]:
    known = viewed.originals.get(origin)
    source = msgspec.to_builtins(known.source) if known and known.source else None
    return {"id": origin, "text": known.text if known else None, "kind": known.kind if known else "", "source": source}


def _link(viewed: ViewedStore, source: str, target: str, shown: str, by: Author | None) -> dict[str, Any]:
    line = brief(viewed, shown)
    if (source, target) in viewed.suspects:
        line["suspect"] = "wrong" if viewed.health.audit.resolved else "suspected"
    if by is not None:
        line["by"] = msgspec.to_builtins(by)
    return line


def _change(viewed: ViewedStore, change: Any) -> dict[str, Any]:
    return {
        **picked(change, "kind", "text", "other"),
        "by": msgspec.to_builtins(change.by),
        "added": [brief(viewed, id) for id in change.added[:40]],
        "added_total": len(change.added),
        "removed": list(change.removed[:40]),
        "removed_total": len(change.removed),
    }


def _index(viewed: ViewedStore, index: Index) -> dict[str, Any]:
    scores = picked(index, "members", "precision", "recall")
    scores |= {"wrong": len(index.wrong), "missing": len(index.missing)}
    return {
        **picked(index, "id", "text", "shape", "group", "degree"),
        "key": index.key.value if index.key else None,
        **(scores if index.scored else dict.fromkeys(scores)),
        "missing_names": list(index.missing[:20]),
        "in": len(viewed.store.inbound(index.id)),
        "opened": len(viewed.readings.get(index.id, ())),
    }


def audit(place: ViewedPlace, viewed: ViewedStore) -> dict[str, Any]:
    """Return the index audit: a row for each authored document and each bad link, and advice.

    The gain or cost of each is included if the run has exams of this store and of the flat one.
    """
    is_trained = place.kind == "run" and viewed.name in place.trained(place.seeds[0])
    health, accounted = viewed.health, account_if_examined(place.folder, viewed.store) if is_trained else None
    uses = accounts(health.audit, viewed.readings, accounted)
    further = advised(accounted, str(place.folder)) if accounted else []
    return {
        "resolved": health.audit.resolved,
        "exams": picked(accounted, "sets", "n") if accounted else None,
        "indexes": [
            {**_index(viewed, index), "use": use} for index, use in zip(health.audit.indexes, uses, strict=True)
        ],
        "kinds": [msgspec.to_builtins(row) for row in health.audit.table],
        "suspects": [msgspec.to_builtins(suspect) for suspect in health.suspects[:MOST_SUSPECTS]],
        "suspects_total": len(health.suspects),
        "advice": [one.sentence for one in advice(health, place.name)]
        + [f"{one.sentence}: kbgym {one.command}" for one in further],
        "history": bool(viewed.events),
    }
