"""A first description of documents nobody has described, by counting: pages, `Label:` fields, names, identifiers.

It knows no language: a field is what stands before a colon in several places, a name what is written large inside a
sentence. So it may be wrong; `--about` and `world.json` have the last word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kbgym.worlds.world import Description, Document, SentenceForm

MOST = 5_000  # documents read, evenly spread over all
SHOWN = 5  # examples of anything
OFTEN = 3  # documents that must have a field, a name or an identifier

_HEAD = re.compile(r"((?:[^>]{1,200}? > )*[^:>]{1,60}): (?=\S)")
_FIELD = re.compile(r"(?:^|; )([^\W\d_][^:;.>]{0,40}): (\S[^;]{0,79})")
_SENTENCE = re.compile(r"[^.!?:;>…。]+")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_NAME = re.compile(rf"{_WORD.pattern}(?: {_WORD.pattern})*")
_IDENTIFIER = re.compile(
    r"(?<![\w.])(?:[^\W\d_]+[-.]?\d[\w.-]*(?<=\w)|\w+_\w+|\w+(?:::\w+)+|[a-z]+[A-Z]\w*)(?!\w)"  # E0382, a_b, a::b, aB
)


def describe(documents: Sequence[Document]) -> Description:
    """A draft from what recurs; the examples are documents as they stand."""
    read = documents[:: max(1, -(-len(documents) // MOST))]
    heads = [match[1] if (match := _HEAD.match(one.text)) else "" for one in read]
    titles = _titles(read, heads)
    fields = _fields(read, heads, titles)
    pages = len({page for one in documents if (page := _page(one))})
    about = f"{len(documents):,} documents, each a sentence, an item of a list or a row of a table"
    about += f", from {pages:,} pages" if pages > 1 else ""
    section = next((one.text for one, head in zip(read, heads, strict=True) if " > " in head), "")
    forms = [SentenceForm("PAGE > SECTION: ...", section)] if section else []
    for text in dict.fromkeys(text for _, text in fields.values()):
        form = "; ".join(f"{label}: ..." for label in fields if f"{label}: " in text)
        forms.append(SentenceForm(form, text))
    keys = [f"a page, such as {_listed(titles)}"] if titles else []
    keys += [f"the field {label}, such as {values}" for label, (values, _) in fields.items()]
    for what, found in (
        ("a name", _counted(_names(read), {*fields, *titles})),
        ("an identifier", _counted(_IDENTIFIER.findall(one.text) for one in read)),
    ):
        keys += [f"{what}, such as {_listed(found)}"] if found else []
    return Description(f"{about}.", tuple(forms), tuple(keys))


def _page(document: Document) -> str:
    return document.about[0] if document.about else document.source.file if document.source else ""


def _titles(read: Sequence[Document], heads: Sequence[str]) -> Counter[str]:
    """What pages are called: what they are about, what stands before their sections, or before most of their text."""
    found: Counter[str] = Counter()
    first: dict[str, Counter[str]] = {}
    for document, head in zip(read, heads, strict=True):
        if document.about:
            found[document.about[0]] += 1
        elif " > " in head:
            found[head.partition(" > ")[0]] += 1
        elif head and document.source:
            first.setdefault(document.source.file, Counter())[head] += 1
    spread = Counter(head for of_page in first.values() for head in of_page)
    for of_page in first.values():
        head, count = of_page.most_common(1)[0]
        if spread[head] == 1 and count > 1:
            found[head] += count
    return found


def _fields(read: Sequence[Document], heads: Sequence[str], titles: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Labels that recur, the most frequent first, each with some of its values and a document that has it."""
    found: dict[str, tuple[Counter[str], str]] = {}
    known = set(titles)
    for document, head in zip(read, heads, strict=True):
        has_title = " > " in head or head in known
        for label, value in _FIELD.findall(document.text[len(head) + 2 :] if has_title else document.text):
            values, _ = found.setdefault(label, (Counter(), document.text))
            values[value.rstrip(" .")] += 1
    count = Counter({label: values.total() for label, (values, _) in found.items() if values.total() >= OFTEN})
    return {label: (_listed(found[label][0]), found[label][1]) for label, _ in count.most_common(2 * SHOWN)}


def _names(read: Sequence[Document]) -> Iterator[list[str]]:
    """Words written large in a row, of each document; at the start of a sentence only if never written small."""
    small = {word for one in read for word in _WORD.findall(one.text) if word[0].islower()}
    for document in read:
        yield [
            name
            for sentence in _SENTENCE.findall(document.text)
            for words in _NAME.findall(sentence)
            for name in _large(words.split(), small)
        ]


def _large(words: list[str], small: set[str]) -> Iterator[str]:
    run: list[str] = []
    for place, word in enumerate([*words, ""]):
        if word[:1].isupper() and not (place == 0 and word.lower() in small):
            run.append(word)
        elif run:
            name = " ".join(run).removesuffix("'s").removesuffix("’s")
            if len(run) > 1 or name.lower() not in small:
                yield name
            run = []


def _counted(of_documents: Iterable[Iterable[str]], but: Iterable[str] = ()) -> Counter[str]:
    """In how many documents each stands, those that stand in enough."""
    count = Counter(one for found in of_documents for one in set(found))
    return Counter({one: n for one, n in count.items() if n >= OFTEN and one not in set(but)})


def _listed(count: Counter[str]) -> str:
    """The most frequent; ties in alphabetical order."""
    return "; ".join(sorted(count, key=lambda one: (-count[one], one))[:SHOWN])
