"""A first description of documents nobody has described, by counting: pages, `Label:` fields, names, identifiers.

It knows no language: a field is what stands before a colon in several places, a name what is written large inside a
sentence. So it may be wrong; `--about` and `world.json` have the last word. Examples show how documents are written and
not what they say: a reader who is examined on them would know it without a search.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from kbgym.worlds.world import Description, Document, SentenceForm

MOST = 5_000  # documents read, evenly spread over all
SHOWN = 5  # examples of anything
LONGEST = 300  # characters of a form or an example
LONGEST_VALUE = 40  # of a field's value
OFTEN = 3  # documents that must have a field, a name or an identifier

_HEAD = re.compile(r"((?:[^>]{1,200}? > )*[^:>]{1,60}): (?=\S)")
_FIELD = re.compile(r"(?:^|; )([^\W\d_][^:;.>]{0,40}): (\S[^;]{0,79})")
_PART = re.compile(r"[^.,!?:;>…。()\"“”]+")
_WORD = re.compile(r"\w[\w'’-]*")
_LARGE = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_IDENTIFIER = re.compile(
    r"(?<![\w.])(?:[^\W\d_]+[-.]?\d[\w.-]*(?<=\w)|\w+_\w+|\w+(?:::\w+)+|[a-z]+[A-Z]\w*)(?!\w)"  # E0382, a_b, a::b, aB
)


def describe(documents: Sequence[Document]) -> Description:
    """A draft from what recurs; the examples are documents without what they say."""
    step = max(1, -(-len(documents) // MOST))
    read = documents[::step]
    heads = [_head(one) for one in read]
    titles = _titles(read, heads)
    own = [
        one.text[len(head) + 2 :] if " > " in head or head in titles else one.text
        for one, head in zip(read, heads, strict=True)
    ]
    fields = _fields(read, own, step)
    pages = len({page for one in documents if (page := _page(one))})
    about = f"{len(documents):,} documents, each a sentence, an item of a list or a row of a table"
    about += f", from {pages:,} pages" if pages > 1 else ""
    forms: dict[str, str] = {}
    for head in heads:
        if " > " in head or head in titles:
            forms.setdefault("PAGE > SECTION: ..." if " > " in head else "PAGE: ...", f"{head}: ...")
    for label, (_, text) in list(fields.items())[:SHOWN]:
        rows = [other for other in fields if f"; {other}: " in text or f": {other}: " in text or label == other]
        form = "; ".join(f"{row.replace(': ', ': ...: ')}: ..." for row in rows)
        begins = min(at for row in rows if (at := text.find(f"{row.partition(': ')[0]}: ")) >= 0)
        forms.setdefault(form, text[:begins] + form)
    keys = [f"a page, such as {_listed(titles)}"] if titles else []
    keys += [f"the field {label}, such as {values}" for label, (values, _) in fields.items()]
    for what, found in (
        ("a name", _counted(_names(own), {*fields, *titles})),
        ("an identifier", _counted(map(_IDENTIFIER.findall, own))),
    ):
        keys += [f"{what}, such as {_listed(found)}"] if found else []
    examples = (SentenceForm(form, example[:LONGEST]) for form, example in forms.items())
    return Description(f"{about}.", tuple(examples), tuple(keys))


def _page(document: Document) -> str:
    return document.about[0] if document.about else document.source.file if document.source else ""


def _head(document: Document) -> str:
    """What stands before a document's text, if anything: its page, page and sections, or a label."""
    if document.about and document.text.startswith(f"{document.about[0]}: "):
        return document.about[0]
    return match[1] if (match := _HEAD.match(document.text)) else ""


def _titles(read: Sequence[Document], heads: Sequence[str]) -> Counter[str]:
    """What pages are called: what they are about, what stands before their sections, or before most of their text."""
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


def _fields(read: Sequence[Document], own: Sequence[str], step: int) -> dict[str, tuple[str, str]]:
    """Labels that recur, those of the most pages first, each with some of its values and a document that has it.

    A label within another ("releases: 17: eol: 2025-05-15") is named with the outer one, without what is between.

    What a page's own name begins with is none: "Killer: A Journal of Murder".
    """
    found: dict[str, tuple[Counter[str], str]] = {}
    pages: dict[str, set[str]] = {}
    for document, text in zip(read, own, strict=True):
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
    shown = ((label, *found[label]) for label in often[: 3 * SHOWN])
    return {
        label: (f"{_listed(values)} ({about}{step * values.total():,} documents)", text)
        for label, values, text in shown
    }


def _names(own: Sequence[str]) -> Iterator[list[str]]:
    """Words written large in a row, of each document."""
    parts = [[_WORD.findall(part) for part in _PART.findall(text)] for text in own]
    small = {word for of_text in parts for words in of_text for word in words if word[0].islower()}
    inside = {word for of_text in parts for words in of_text for word in words[1:] if _is_large(word)}
    for of_text in parts:
        yield [name for words in of_text for name in _large(words, small, inside)]


def _large(words: Sequence[str], small: Container[str], inside: Container[str]) -> Iterator[str]:
    """The names between two signs. The first word is written large in any case, so something else must speak for it."""
    run: list[str] = []
    for place, word in enumerate([*words, ""]):
        if place == 0 and (word.lower() in small or not (word in inside or any(map(_is_large, words[1:2])))):
            continue
        if _is_large(word):
            run.append(word)
        elif run:
            yield " ".join(run).removesuffix("'s").removesuffix("’s")
            run = []


def _is_large(word: str) -> bool:
    return word[:1].isupper() and _LARGE.fullmatch(word) is not None


def _counted(of_documents: Iterable[Iterable[str]], but: Container[str] = ()) -> Counter[str]:
    """In how many documents each stands, those that stand in enough."""
    count = Counter(one for found in of_documents for one in set(found))
    return Counter({one: n for one, n in count.items() if n >= OFTEN and one not in but})


def _listed(count: Counter[str]) -> str:
    """The most frequent; ties in alphabetical order."""
    return "; ".join(sorted(count, key=lambda one: (-count[one], one))[:SHOWN])
