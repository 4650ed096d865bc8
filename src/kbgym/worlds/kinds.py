"""A first description of documents nobody has described, by counting: pages, `Label:` fields, names, identifiers.

It knows no language: a field is what stands before a colon in several places, a name what is written large inside a
sentence. So it may be wrong; `--about` and `world.json` have the last word. Examples show how documents are written and
not what they say: a reader who is examined on them would know it without a search.


What a kind of world can say of itself, and which kind a world is: the only place that asks.

A world names its kind in `world.json`. A kind that is registered here may list its questions, tell which documents
belong under a key, name the indexes a perfect curator would build. Every other world (a corpus, a public question set,
a plain folder) is documents and questions: it can do none of that, and says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from typing import Protocol

from kbgym import plugins
from kbgym.errors import BadInput
from kbgym.worlds.truth import Truth
from kbgym.worlds.world import Description, Document, Question, SentenceForm, World

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


class WorldKind(Protocol):
    """`name` is what `world.json` says, `title` what a report calls it.

    `has_pools`: it can list everything a template could ask. `lists_answers`: a gold may be several answers, separated
    by commas.
    """

    name: str
    title: str
    has_pools: bool
    lists_answers: bool

    def pool(self, world: World, template: str) -> Iterator[Question]:
        """Every question a template can ask in this world."""

    def truth(self, world: World) -> Truth | None:
        """Which documents belong under a key; None where nothing is known of keys."""

    def oracle(self, world: World) -> Iterator[tuple[str, str, list[str]]] | None:
        """(kind, text, documents under it) of every index there could be; None where they are not known."""

    def difficulty(self, question: Question) -> int:
        """Questions of one number are drawn for training in proportion to how many there are."""

    def describe(self, world: World) -> Description:
        """What its documents are about, worked out; see `description_of` for what is shown."""


_REAL_TEXT = ("corpus", "public")  # searched by words too; whatever else is there is searched as in the paper


class UnknownKind:
    """Documents and questions of which nothing more is known."""

    has_pools = False
    lists_answers = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.title = name or "your documents"

    def pool(self, world: World, template: str) -> Iterator[Question]:
        raise BadInput("this world cannot list its questions: only generated worlds have instance pools.")

    def truth(self, world: World) -> None:
        return None

    def oracle(self, world: World) -> None:
        return None

    def difficulty(self, question: Question) -> int:
        return 0

    def describe(self, world: World) -> Description:
        return describe(world.documents)


def kind_of(world: World) -> WorldKind:
    return _kind(_name(world))


@cache
def _kind(name: str) -> WorldKind:
    made: WorldKind = plugins.load("kbgym.worlds", name)() if plugins.has("kbgym.worlds", name) else UnknownKind(name)
    return made


def _name(world: World) -> str:
    return str(world.facts.get("kind", ""))


def agent_for(world: World) -> str:
    """Who plays on a world unless told otherwise: the reference agents where they know the grammar, else general."""
    return "reference" if _name(world) in plugins.BUILT_IN["kbgym.worlds"] else "general"


def why_agent(world: World) -> str:
    """Which agents a world gets unless told otherwise, and why, in one line."""
    if agent_for(world) == "reference":
        return f"The reference agents play: they know the grammar of {kind_of(world).title}."
    return "The general agents play: they read any text, and the reference agents do not know this world's grammar."


def search_of(world: World) -> object:
    """What a world is searched by: what its facts say, else what suits its text."""
    return world.facts.get("search") or ("hybrid" if _name(world) in _REAL_TEXT else "vectors")


def observations_of(world: World) -> str:
    """How results read unless told otherwise: on real text they say what has links, elsewhere as in the paper."""
    return "rich" if _name(world) in _REAL_TEXT else "paper"


def budget_of(world: World) -> int | None:
    """How many actions a world asks its readers to answer within; None where it says nothing."""
    said = world.facts.get("forward_budget")
    return said if isinstance(said, int) and said > 0 else None


def description_of(world: World) -> Description:
    """What a world says of itself: its own words where `world.json` has them, the rest as its kind works it out."""
    said, made = world.description, kind_of(world).describe(world) if world.documents else Description()
    return Description(said.about or made.about, said.forms or made.forms, said.keys or made.keys) if said else made


def description_for_prompt(world: World, keys: bool = True) -> str:
    """The same in plain text: a paragraph, the forms of sentences with an example each, the kinds of keys.

    `keys` help who builds or may find indexes, and nobody else.
    """
    said = description_of(world)
    lines = [said.about]
    if said.forms:
        lines += ["", "Forms its sentences have:", *(f"- {one.form} Example: {one.example}" for one in said.forms)]
    if keys and said.keys:
        lines += ["", "Keys that many documents share:", *(f"- {key}" for key in said.keys)]
    return "\n".join(lines)
