"""Pages: the structure a corpus has before the first question. Nothing is read but titles, sentences and their links.

A page's first sentence stands for the page, so no document is added that could displace another in a search. It links
to the page's other sentences in reading order, to the pages they name, and to the few pages that name it; every other
sentence links to the pages it names itself. To name a page is to write its title, or to link to it in the file. Pages
that name none and are named by none stay as they are: that something has links tells a reader that it leads on. A field
that at least `SHARED` pages have gets a document of its own ("Start Date, how many and which", as the general
curator words it) that links to each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import structs

from kbgym.agents.general.keys import TextKey, index_text
from kbgym.baselines.arm import Built, flat_store, link_all
from kbgym.baselines.titles import PageTitles, body_of
from kbgym.worlds.splits import SourcePage, source_pages
from kbgym.worlds.world import Document

CROWD = 20  # a page that more pages name leads everywhere, and so nowhere
FEW = 2  # a page that so many name links back to them
SHARED = 5
_LONGEST_LABEL = 5  # words


def build(documents: Sequence[Document]) -> Built:
    """Link the sentences of pages, and the pages that name each other."""
    pages = source_pages(documents)
    titles = PageTitles(pages)
    named = _named(pages, titles)
    naming: dict[int, list[int]] = {}
    for number, page in enumerate(pages):
        for other in dict.fromkeys(other for one in page.documents for other in named[one.id]):
            naming.setdefault(other, []).append(number)
    heads = [page.documents[0].id for page in pages]
    links: dict[str, list[str]] = {}
    for number, page in enumerate(pages):
        first, *others = page.documents
        far = [other for one in page.documents for other in named[one.id]]
        back = naming.get(number, [])
        for document in others:
            links[document.id] = [heads[other] for other in named[document.id]]
        if far or back:
            near = [heads[other] for other in (*far, *(back if len(back) <= FEW else ()))]
            links[first.id] = list(dict.fromkeys([*(document.id for document in others), *near]))
    store = flat_store(documents)
    link_all(store, links)
    fields = _fields(pages)
    for label, ids in fields.items():
        store.link(store.add(index_text(TextKey("field", label))), ids)
    notes = {
        "pages": len(pages),
        "pages_named": len(naming),
        "mentions": sum(map(len, named.values())),
        "ambiguous": sum(titles.ambiguous.values()),
        "fields": len(fields),
    }
    return Built(store, notes=notes)


def with_page_links(documents: Sequence[Document]) -> tuple[Document, ...]:
    """The documents of a world with the arm's links as their own; what it would write besides is left out."""
    store = build(documents).store
    originals = {document.id for document in documents}
    return tuple(
        structs.replace(document, links=tuple(id for id in links if id in originals))
        for document in documents
        for links in [dict.fromkeys((*store[document.id].links, *document.links))]
    )


def _named(pages: Sequence[SourcePage], titles: PageTitles) -> dict[str, list[int]]:
    """The other pages each document names, in the order it does, without those that a crowd names."""
    page_of = {document.id: number for number, page in enumerate(pages) for document in page.documents}
    found: dict[str, list[int]] = {}
    crowds: Counter[int] = Counter()
    for number, page in enumerate(pages):
        for place, document in enumerate(page.documents):
            linked = [page_of[target] for target in document.links if target in page_of]
            others = dict.fromkeys([*linked, *titles.named(body_of(page, place))])
            found[document.id] = [other for other in others if other != number]
        crowds.update({other for one in page.documents for other in found[one.id]})
    return {id: [other for other in others if crowds[other] <= CROWD] for id, others in found.items()}


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
