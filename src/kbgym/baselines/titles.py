"""Which pages a sentence names: by a page's title, by the title without what stands in brackets, by its other names.

Precision comes first. A name is whole words written as the title writes them, and not a part of a longer name; a title
of one word must be one the corpus never writes small. A name that several pages could bear is decided by the words in
brackets ("the film Holm" names "Holm (film)") or left out and counted. It knows titles and sentences, no question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kbgym.worlds.splits import SourcePage

_TOKEN = re.compile(r"[^\W_]+(?:['’.-](?!s\b)[^\W_]+)*")
_BRACKETS = re.compile(r"\s*\(([^()]*)\)$")
_ALSO = re.compile(
    r"\b(?:(?:also|commonly|formerly|better|originally|previously) (?:known|called|published|named|spelled) as|aka"
    r"|abbreviated(?: as)?) [\"“'‘]{0,2}([^,.;()\"“”]{3,60})"
)
_OPENING = re.compile(r"[\"“'‘]{0,2}([^\W\d_a-z][^,;()\"“”]{2,60}?)[\"”'’]{0,2},? (?:\(|is |was |are |were )")
_SMALL = frozenset(
    "a an the this that these those in on at by for from with to of and or but as after before since during when while "
    "he she it they his her its their both all some many most other".split()
)
Name = tuple[str, ...]


class PageTitles:
    """The names of some pages, numbered as they stand; `ambiguous` counts how often a sentence named one of several."""

    def __init__(self, pages: Sequence[SourcePage]) -> None:
        self._small, self._large = _spellings(document.text for page in pages for document in page.documents)
        self._pages: dict[Name, dict[int, frozenset[str]]] = {}  # a name, whose it is, and the words in brackets
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
                if _tokens(name) not in titled:  # a page's own title is nobody's other name
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
        """Whether these words can stand for a page: not a number, nor a word that is also written small."""
        if len(tokens) > 1:
            return any(token[:1].isupper() or token[:1].isdigit() for token in tokens) and len("".join(tokens)) > 3
        word = tokens[0]
        return len(word) > 2 and word[:1].isupper() and 20 * self._small[word.lower()] <= self._large[word]

    def named(self, text: str) -> Iterator[int]:
        """The pages a sentence names, in the order it does."""
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
        """Whether a name stands at this word, as written, and is not part of a longer one."""
        end = at + len(name)
        if tuple(words[at + 1 : end]) != name[1:] or (len(name) == 1 and words[at] != name[0]):
            return False
        if end < len(words) and _joined(text, found[end - 1], found[end]) and _is_large(words[end]):
            return False
        alone = at == 0 or not _joined(text, found[at - 1], found[at]) or not _is_large(words[at - 1])
        return len(name) > 1 or alone

    def _whose(self, name: Name, here: frozenset[str]) -> int | None:
        """The one page a name stands for here."""
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
    """What a page's first sentence calls its subject besides: the full name it begins with, "also known as"."""
    text = body_of(page, 0)
    own = set(_tokens(page.title))
    found = [match[1] for match in _ALSO.finditer(text)]
    if (opening := _OPENING.match(text)) is not None and own & set(_tokens(opening[1])):
        found.append(opening[1].removeprefix("The "))
    return [name for name in found if 1 < len(_tokens(name)) <= 6 and all(map(_may_stand, _tokens(name)))]


def body_of(page: SourcePage, place: int) -> str:
    """A document without the page's title before it."""
    return page.documents[place].text.removeprefix(f"{page.title}: ")


def _may_stand(word: str) -> bool:
    return _is_large(word) or word in ("of", "the", "and", "de", "la", "van", "von", "du", "del", "in", "for")


def _tokens(name: str) -> Name:
    return tuple(_TOKEN.findall(name))


def _is_large(word: str) -> bool:
    return (word[:1].isupper() or word[:1].isdigit()) and word.lower() not in _SMALL


def _joined(text: str, one: re.Match[str], other: re.Match[str]) -> bool:
    return text[one.end() : other.start()] in (" ", "-", "–")


def _spellings(texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """How often words are written small, and large."""
    small: Counter[str] = Counter()
    large: Counter[str] = Counter()
    for text in texts:
        for word in _TOKEN.findall(text):
            (small if word[:1].islower() else large)[word] += 1
    return small, large
