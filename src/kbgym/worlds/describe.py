"""Draft descriptions of unknown documents, from recurring pages, `Label:` fields and identifiers.

The draft is independent of the language: a field is the text before a colon in several places. It may be wrong;
`--about` and `world.json` override it. Examples show the form of documents but not their content, since a reader must
search for the content in an exam.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from kbgym.worlds.world import Description, Document, SentenceForm

MOST = 5_000  # documents read, evenly spaced
SHOWN = 5  # examples per kind
LONGEST = 300  # characters of a form or an example
LONGEST_VALUE = 40  # of a field's value
OFTEN = 3  # minimum document frequency of a field or an identifier

_HEAD = re.compile(r"((?:[^>]{1,200}? > )*[^:>]{1,60}): (?=\S)")
_FIELD = re.compile(r"(?:^|; )([^\W\d_][^:;.>]{0,40}): (\S[^;]{0,79})")
_IDENTIFIER = re.compile(
    r"(?<![\w.])(?:[^\W\d_]+[-.]?\d[\w.-]*(?<=\w)|\w+_\w+|\w+(?:::\w+)+|[a-z]+[A-Z]\w*)(?!\w)"  # E0382, a_b, a::b, aB
)
Fields = dict[str, tuple[str, str]]  # by label: its values in words, and a document with it


def describe(documents: Sequence[Document]) -> Description:
    """Draft a description from recurring forms; its examples are documents without their content."""
    step = max(1, -(-len(documents) // MOST))
    read = documents[::step]
    heads = [_head(one) for one in read]
    titles = _titles(read, heads)
    bodies = [
        one.text[len(head) + 2 :] if " > " in head or head in titles else one.text
        for one, head in zip(read, heads, strict=True)
    ]
    fields = _fields(read, bodies, step)
    pages = len({page for one in documents if (page := _page(one))})
    about = f"{len(documents):,} documents" + (f" from {pages:,} pages" if pages > 1 else "")
    keys = [f"a page, such as {_listed(titles)}"] if titles else []
    keys += [f"the field {label}, such as {values}" for label, (values, _) in fields.items()]
    if found := _recurring(map(_IDENTIFIER.findall, bodies)):
        keys.append(f"an identifier, such as {_listed(found)}")
    return Description(f"{about}.", tuple(_forms(heads, titles, fields)), tuple(keys))


def _page(document: Document) -> str:
    return document.about[0] if document.about else document.source.file if document.source else ""


def _head(document: Document) -> str:
    """Return the heading of a document's text: its page, its page and sections, a label, or nothing."""
    if document.about and document.text.startswith(f"{document.about[0]}: "):
        return document.about[0]
    return match[1] if (match := _HEAD.match(document.text)) else ""


def _forms(heads: Sequence[str], titles: Container[str], fields: Fields) -> Iterator[SentenceForm]:
    """Yield the forms of documents: in a section, on a page, and with each of the first fields."""
    forms: dict[str, str] = {}
    for head in heads:
        if " > " in head or head in titles:
            forms.setdefault("PAGE > SECTION: ..." if " > " in head else "PAGE: ...", f"{head}: ...")
    for label, (_, text) in list(fields.items())[:SHOWN]:
        rows = [other for other in fields if f"; {other}: " in text or f": {other}: " in text or label == other]
        form = "; ".join(f"{row.replace(': ', ': ...: ')}: ..." for row in rows)
        begins = min(at for row in rows if (at := text.find(f"{row.partition(': ')[0]}: ")) >= 0)
        forms.setdefault(form, text[:begins] + form)
    return (SentenceForm(form, example[:LONGEST]) for form, example in forms.items())


def _titles(read: Sequence[Document], heads: Sequence[str]) -> Counter[str]:
    """Count page titles: the subjects of documents, the text before sections, or the most common prefix of a page."""
    found: Counter[str] = Counter()
    first: dict[str, Counter[str]] = {}
    for document, head in zip(read, heads, strict=True):
        if document.about:
            found[document.about[0]] += 1
        elif " > " in head:
            found[head.partition(" > ")[0]] += 1
        elif head and (page := _page(document)):
            first.setdefault(page, Counter())[head] += 1
    spread = Counter(head for of_page in first.values() for head in of_page)
    for of_page in first.values():
        head, count = of_page.most_common(1)[0]
        if spread[head] == 1 and count > 1:
            found[head] += count
    return found


def _fields(read: Sequence[Document], bodies: Sequence[str], step: int) -> Fields:
    """Return recurring labels, those of the most pages first.

    A label within another ("releases: 17: eol: 2025-05-15") is named with the outer one, omitting the text between.
    The beginning of a page's own name is not a label: "Killer: A Journal of Murder".
    """
    found: dict[str, tuple[Counter[str], str]] = {}
    pages: dict[str, set[str]] = {}
    for document, text in zip(read, bodies, strict=True):
        for first, said in _FIELD.findall(text):
            if not _page(document).startswith(f"{first}:"):
                *path, value = f"{first}: {said}".split(": ")
                inner = next((part for part in reversed(path[1:]) if part.replace("_", "").isalpha()), "")
                label = f"{first}: {inner}" if inner else first
                values, _ = found.setdefault(label, (Counter(), document.text))
                values[value.rstrip(" .")[:LONGEST_VALUE]] += 1
                pages.setdefault(label, set()).add(_page(document) or document.id)
    often = [label for label, (values, _) in found.items() if values.total() >= OFTEN]
    often.sort(key=lambda label: -len(pages[label]))
    about = "about " if step > 1 else ""
    return {
        label: (f"{_listed(values)} ({about}{step * values.total():,} documents)", text)
        for label in often[: 3 * SHOWN]
        for values, text in [found[label]]
    }


def _recurring(of_documents: Iterable[Iterable[str]]) -> Counter[str]:
    """Return the document frequency of strings that occur in enough documents."""
    count = Counter(one for found in of_documents for one in set(found))
    return Counter({one: n for one, n in count.items() if n >= OFTEN})


def _listed(count: Counter[str]) -> str:
    """Join the most frequent strings, with ties in alphabetical order."""
    return "; ".join(sorted(count, key=lambda one: (-count[one], one))[:SHOWN])
