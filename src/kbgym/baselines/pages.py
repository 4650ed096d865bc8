"""The pages baseline: links from the structure of a corpus, using only titles, sentences and their links.

A page's first sentence represents the page, so no document is added that could displace another in a search. It links
to the page's other sentences in reading order, to the pages they name, and to the few pages that name it; every other
sentence links to the pages it names itself. To name a page is to write its title, or to link to it in the file. Pages
that name none and are named by none are unchanged, since links signal to a reader that a document leads on. A field
that at least `SHARED` pages have gets a document of its own ("Start Date, how many and which", as the general
curator words it) that links to each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import structs

from kbgym.baselines.arm import Built, flat_store
from kbgym.worlds.world import Document, SourcePage, source_pages

CROWD = 20  # a page named by more pages than this is too general to link
FEW = 2  # a page named by at most this many pages links back to them
SHARED = 5
_LONGEST_LABEL = 5  # words


def build(documents: Sequence[Document]) -> Built:
    """Link the sentences of each page, and pages that mention each other."""
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
    for id, targets in links.items():
        store.link(id, targets)
    fields = _fields(pages)
    for label, ids in fields.items():
        store.link(store.add(f"{label.replace('_', ' ')}, how many and which"), ids)
    notes = {
        "pages": len(pages),
        "pages_named": len(naming),
        "mentions": sum(map(len, named.values())),
        "ambiguous": sum(titles.ambiguous.values()),
        "fields": len(fields),
    }
    return Built(store, notes=notes)


def with_page_links(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents with the arm's links added; authored documents are left out."""
    store = build(documents).store
    originals = {document.id for document in documents}
    return tuple(
        structs.replace(document, links=tuple(id for id in links if id in originals))
        for document in documents
        for links in [dict.fromkeys((*store[document.id].links, *document.links))]
    )


def _named(pages: Sequence[SourcePage], titles: PageTitles) -> dict[str, list[int]]:
    """List the other pages each document mentions in text order, except those with over `CROWD` mentions."""
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
    """Map labels on at least `SHARED` pages to their documents ("Alder: Start Date: 2014")."""
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


# -- titles -----------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[^\W_]+(?:['’.-](?!s\b)[^\W_]+)*")
_BRACKETS = re.compile(r"(?<!\s)\s*\(([^()]*)\)$")
_ALSO = re.compile(
    r"\b(?:(?:also|commonly|formerly|better|originally|previously) (?:known|called|published|named|spelled) as|aka"
    r"|abbreviated(?: as)?) [\"“'‘]{0,2}([^,.;()\"“”]{3,60})"
)
_OPENING = re.compile(r"[\"“'‘]{0,2}([^\W\d_a-z][^,;()\"“”]{2,60}?)[\"”'’]{0,2},? (?:\(|is |was |are |were )")
_SMALL = frozenset(
    "a an the this that these those in on at by for from with to of and or but as after before since during when while "
    "he she it they his her its their both all some many most other".split()
)
_INSIDE = frozenset("of the and de la van von du del in for".split())
Name = tuple[str, ...]


class PageTitles:
    """An index of page mentions by title, by title without brackets, and by alias.

    Precision comes first: a mention is whole words spelled as in the title and not part of a longer name; a one-word
    title must never be lower-case in the corpus. A name of several pages is resolved by the words in brackets ("the
    film Holm" is "Holm (film)") or counted in `ambiguous`.
    """

    def __init__(self, pages: Sequence[SourcePage]) -> None:
        self._small, self._large = _spellings(document.text for page in pages for document in page.documents)
        self._pages: dict[Name, dict[int, frozenset[str]]] = {}  # by name: its pages, and the words in brackets
        self._by_first: dict[str, list[Name]] = {}
        self.ambiguous: Counter[str] = Counter()
        for number, page in enumerate(pages):
            self._enter(page.title, number, frozenset())
            if (brackets := _BRACKETS.search(page.title)) is not None:
                told = frozenset(word.lower() for word in _TOKEN.findall(brackets[1]))
                self._enter(page.title[: brackets.start()], number, told)
        titled = set(self._pages)
        for number, page in enumerate(pages):
            for name in other_names(page):
                if _tokens(name) not in titled:  # a page's own title is not an alias of another
                    self._enter(name, number, frozenset())
        for names in self._by_first.values():
            names.sort(key=lambda name: (-len(name), name))

    def _enter(self, name: str, page: int, told: frozenset[str]) -> None:
        tokens = _tokens(name)
        if not tokens or not self._is_name(tokens):
            return
        known = self._pages.setdefault(tokens, {})
        if not known:
            self._by_first.setdefault(tokens[0], []).append(tokens)
        known.setdefault(page, told)

    def _is_name(self, tokens: Name) -> bool:
        """Return True if the words can name a page: not a number, and not usually lower-case."""
        if len(tokens) > 1:
            return any(token[:1].isupper() or token[:1].isdigit() for token in tokens) and len("".join(tokens)) > 3
        word = tokens[0]
        return len(word) > 2 and word[:1].isupper() and 20 * self._small[word.lower()] <= self._large[word]

    def named(self, text: str) -> Iterator[int]:
        """Yield the pages that a sentence mentions, in text order."""
        found = list(_TOKEN.finditer(text))
        words = [token[0] for token in found]
        here = frozenset(word.lower() for word in words)
        at = 0
        while at < len(words):
            name = next((name for name in self._at(words[at]) if self._stands(name, text, found, words, at)), None)
            if name is None:
                at += 1
                continue
            page = self._whose(name, here)
            if page is not None:
                yield page
            at += len(name)

    def _at(self, word: str) -> list[Name]:
        return self._by_first.get(word) or self._by_first.get(word[:1].upper() + word[1:], [])

    def _stands(self, name: Name, text: str, found: list[re.Match[str]], words: list[str], at: int) -> bool:
        """Return True if the name begins at this word and is not part of a longer one."""
        end = at + len(name)
        if tuple(words[at + 1 : end]) != name[1:] or (len(name) == 1 and words[at] != name[0]):
            return False
        if end < len(words) and _joined(text, found[end - 1], found[end]) and _is_large(words[end]):
            return False
        alone = at == 0 or not _joined(text, found[at - 1], found[at]) or not _is_large(words[at - 1])
        return len(name) > 1 or alone

    def _whose(self, name: Name, here: frozenset[str]) -> int | None:
        """Return the page that a name refers to, or None if ambiguous."""
        whose = self._pages[name]
        told = [page for page, words in whose.items() if words and words & here]
        plain = [page for page, words in whose.items() if not words]
        for choice in (told, plain, list(whose)):
            if len(choice) == 1:
                return choice[0]
            if choice:
                break
        self.ambiguous[" ".join(name)] += 1
        return None


def other_names(page: SourcePage) -> list[str]:
    """Return aliases in a page's first sentence: its opening full name and "also known as"."""
    text = body_of(page, 0)
    own = set(_tokens(page.title))
    found = [match[1] for match in _ALSO.finditer(text)]
    if (opening := _OPENING.match(text)) is not None and own & set(_tokens(opening[1])):
        found.append(opening[1].removeprefix("The "))
    return [
        name
        for name in found
        if 1 < len(_tokens(name)) <= 6 and all(_is_large(word) or word in _INSIDE for word in _tokens(name))
    ]


def body_of(page: SourcePage, place: int) -> str:
    """Return a document's text without the page title prefix."""
    return page.documents[place].text.removeprefix(f"{page.title}: ")


def _tokens(name: str) -> Name:
    return tuple(_TOKEN.findall(name))


def _is_large(word: str) -> bool:
    return (word[:1].isupper() or word[:1].isdigit()) and word.lower() not in _SMALL


def _joined(text: str, one: re.Match[str], other: re.Match[str]) -> bool:
    return text[one.end() : other.start()] in (" ", "-", "–")


def _spellings(texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Count lower-case and capitalised spellings of words."""
    small: Counter[str] = Counter()
    large: Counter[str] = Counter()
    for text in texts:
        for word in _TOKEN.findall(text):
            (small if word[:1].islower() else large)[word] += 1
    return small, large
