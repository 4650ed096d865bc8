"""Pages: the structure a corpus has before the first question. Nothing is read but titles, sentences and their links.

A page's first sentence stands for the page, so no document is added that could displace another in a search. It links
to the page's other sentences in reading order, then to the pages they name; every other sentence links to the pages it
names itself, and to what its file links it to. Pages that name none and are named by none are left as they are: a
search for their title shows them, and nothing leads on. A field that at least `SHARED` pages have gets a document of
its own ("Start Date of all pages") that links to each.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbgym.baselines.arm import Built, flat_store, link_all
from kbgym.baselines.titles import PageTitles, body_of
from kbgym.tools import PAGE_SIZE
from kbgym.worlds.pages import SourcePage, source_pages
from kbgym.worlds.world import Document

SHARED = 5
MOST_ALONE = PAGE_SIZE
_LONGEST_LABEL = 5  # words


def build(documents: Sequence[Document]) -> Built:
    """Link the sentences of pages, and the pages that name each other."""
    pages = source_pages(documents)
    titles = PageTitles(pages)
    heads = [page.documents[0].id for page in pages]
    page_of = {document.id: number for number, page in enumerate(pages) for document in page.documents}
    named: dict[str, list[int]] = {}
    for number, page in enumerate(pages):
        for place, document in enumerate(page.documents):
            linked = [page_of[target] for target in document.links if target in page_of]
            found = dict.fromkeys([*linked, *titles.named(body_of(page, place))])
            named[document.id] = [other for other in found if other != number]
    bridges = {number for number, page in enumerate(pages) if any(named[one.id] for one in page.documents)}
    bridges |= {other for others in named.values() for other in others}
    links: dict[str, list[str]] = {}
    for number, page in enumerate(pages):
        first, *others = page.documents
        for document in others:
            links[document.id] = [heads[other] for other in named[document.id]]
        if number in bridges or len(page.documents) > MOST_ALONE:
            far = dict.fromkeys(heads[other] for one in page.documents for other in named[one.id])
            links[first.id] = [*(document.id for document in others), *far]
    store = flat_store(documents)
    link_all(store, links)
    fields = _fields(pages)
    for label, ids in fields.items():
        store.link(store.add(f"{label} of all pages"), ids)
    notes = {
        "pages": len(pages),
        "bridging_pages": len(bridges),
        "links_to_named_pages": sum(map(len, named.values())),
        "ambiguous": sum(titles.ambiguous.values()),
        "ambiguous_names": len(titles.ambiguous),
        "fields": len(fields),
    }
    return Built(store, notes=notes)


def _fields(pages: Sequence[SourcePage]) -> dict[str, list[str]]:
    """Labels that stand on at least so many pages, and the documents they stand in ("Alder: Start Date: 2014")."""
    found: dict[str, list[str]] = {}
    holding: dict[str, set[int]] = {}
    for number, page in enumerate(pages):
        for place, document in enumerate(page.documents):
            *path, value = body_of(page, place).split(": ")
            label = " ".join(dict.fromkeys((path[0], path[-1]))) if path else ""
            if label and value.strip() and len(label.split()) <= _LONGEST_LABEL and label[-1:].isalnum():
                found.setdefault(label, []).append(document.id)
                holding.setdefault(label, set()).add(number)
    return {label: ids for label, ids in found.items() if len(holding[label]) >= SHARED}
