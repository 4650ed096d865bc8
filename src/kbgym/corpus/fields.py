"""Readers of YAML, TOML and JSON as trees of texts, and their fields: one per value, with its path of keys.

    Angular: releases: cycle 17: eol: 2025-05-15

Values are texts as written in the file, with their position if it is known, because conversion loses information
(`17.10` is a version, `no` may be Norway). A list item is identified by its name (`name`, `title`, `id` ...), else by
its first key and value if that is short, else by its number. A YAML alias shares the node it names, so traversals are
bounded by their output.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from kbgym.corpus.blocks import Block, Broken, Page, folded
from kbgym.errors import Missing

MOST_DEPTH = 60
TOO_DEEP = f"its values are nested more than {MOST_DEPTH} deep"
_DEEP_KEY = re.compile(
    rf"^[ \t\[]{{0,100}}(?:[\w\"'-]{{1,1000}}[ \t]{{0,20}}\.[ \t]{{0,20}}){{{MOST_DEPTH}}}", re.MULTILINE
)
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)


class Node(msgspec.Struct, eq=False):
    """A text, or nodes with a key each (the keys of a list are empty)."""

    text: str = ""
    items: list[tuple[str, Node]] | None = None
    listed: bool = False
    span: tuple[int, int] | None = None

    def get(self, *keys: str) -> str:
        """Return the first text under one of these keys."""
        for wanted in keys:
            for key, node in self.items or () if not self.listed else ():
                if key == wanted and node.items is None and node.text.strip():
                    return node.text
        return ""


# -- YAML -------------------------------------------------------------------------------------------------------------


def read_yaml(text: str, base: int = 0) -> tuple[list[Node], list[str]]:
    """Return the documents and comments of a YAML text that starts at `base` of its file. Aliases are shared nodes."""
    try:
        import yaml
    except ImportError:
        raise Missing("reading YAML needs PyYAML; run: pip install 'kbgym[documents]'") from None
    loader, depth = getattr(yaml, "CBaseLoader", yaml.BaseLoader), 0
    try:
        for event in yaml.parse(text, Loader=loader):  # the library composes nodes by recursion, without a limit
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:
                raise Broken(TOO_DEEP)
        roots = list(yaml.compose_all(text, Loader=loader))
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f"line {mark.line + 1:,}: " if mark else ""
        raise Broken(f"{where}no YAML: {problem or 'a character that may not be there'}") from None
    known: dict[Any, Node] = {}
    trees = [_yaml_node(root, known, base) for root in roots if root is not None]
    gaps, at = list[str](), base
    for start, end in sorted(node.span for node in known.values() if node.span):
        gaps.append(text[at - base : start - base])
        at = end
    gaps.append(text[at - base :])
    return trees, [comment.strip() for gap in gaps for comment in _COMMENT.findall(gap)]


def _yaml_node(node: Any, known: dict[Any, Node], base: int) -> Node:
    """Return a node of the library as ours; what several aliases name is shared."""
    if node in known:
        return known[node]
    if node.id == "scalar":
        known[node] = Node(node.value, span=(base + node.start_mark.index, base + node.end_mark.index))
        return known[node]
    items: list[tuple[str, Node]] = []
    known[node] = Node(items=items, listed=node.id == "sequence")
    for part in node.value:
        key, value = ("", part) if node.id == "sequence" else part
        name = _key(_yaml_node(key, known, base)) if key else ""
        one = _yaml_node(value, known, base)
        if name == "<<" and one.items is not None:
            merged = one.items if not one.listed else [pair for _, part in one.items for pair in part.items or ()]
            own = {own for own, _ in items}
            items += [pair for pair in merged if pair[0] not in own]
        else:
            items.append((name, one))
    return known[node]


def _key(node: Node) -> str:
    """Return a key as text; a collection used as a key is rendered as its texts."""
    if node.items is None:
        return node.text
    return ", ".join(part for key, one in node.items[:20] for part in (key, one.text) if part)


# -- TOML and JSON ----------------------------------------------------------------------------------------------------


class Pairs(list[tuple[str, Any]]):
    """A JSON object with all of its keys, including duplicates."""


class Number(str):
    """A JSON number as written."""

    __slots__ = ()


def read_toml(text: str) -> tuple[list[Node], list[str]]:
    """Return a TOML text as one node, and the comments on lines of their own."""
    if _DEEP_KEY.search(text):  # the library takes quadratic time and memory for one
        raise Broken(TOO_DEEP)
    try:
        data = tomllib.loads(text, parse_float=str)
        tree = tree_of(data)
    except tomllib.TOMLDecodeError as error:
        raise Broken(f"no TOML: {error}") from None
    except ValueError:
        raise Broken("no TOML: an integer of thousands of digits") from None
    except RecursionError:
        raise Broken(TOO_DEEP) from None
    return [tree], [line.strip() for line in text.split("\n") if line.lstrip().startswith("#")]


def json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield consecutive JSON values with their spans; objects as `Pairs`, numbers as `Number`."""
    decoder = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=Number)
    at = _skip(text, 0)
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise Broken(f"line {error.lineno:,}: no JSON: {error.msg}") from None
        except RecursionError:
            raise Broken(TOO_DEEP) from None
        yield value, at, end
        at = _skip(text, end)
        if at == end < len(text):
            raise Broken(f"no JSON: something follows its end, at character {end:,}")


_SPACE = re.compile(r"\s*")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def tree_of(value: Any, span: tuple[int, int] | None = None, depth: int = 0) -> Node:
    """Return a value of `json_values` as a node whose parts have the same span."""
    if depth > MOST_DEPTH:
        raise Broken(TOO_DEEP)
    if isinstance(value, dict | Pairs):
        pairs = value.items() if isinstance(value, dict) else value
        return Node(items=[(key, tree_of(one, span, depth + 1)) for key, one in pairs], span=span)
    if isinstance(value, list):
        return Node(items=[("", tree_of(one, span, depth + 1)) for one in value], listed=True, span=span)
    if isinstance(value, bool):
        return Node(str(value).lower(), span=span)
    if hasattr(value, "isoformat"):
        return Node(value.isoformat(), span=span)
    return Node("" if value is None else str(value), span=span)


_NAMES = ("name", "title", "id", "key", "label", "slug")
_ADDRESSES = ("permalink", "url", "slug", "aliases", "redirect_from")
LONGEST_NAME = 80
LONGEST_PATH = 300
LONGEST_WHOLE = 200  # a value up to this length is one document even if it contains a full stop
NOTHING = "(no value)"


def read_yaml_file(text: str) -> Page:
    return field_page(*read_yaml(text), len(text), (0, len(text)))


def read_toml_file(text: str) -> Page:
    return field_page(*read_toml(text), len(text), (0, len(text)))


def field_page(trees: list[Node], comments: list[str], size: int, whole: tuple[int, int]) -> Page:
    """Return a page of fields; `whole` is the span of values that have none of their own."""
    page = Page(folded(next((title for tree in trees if (title := tree.get("title", "name"))), "")))
    add_fields(page, trees, size, whole)
    page.lost += [("comment", comment) for comment in comments]
    return page


def add_fields(
    page: Page, trees: list[Node], size: int, whole: tuple[int, int], without: frozenset[str] = frozenset()
) -> None:
    """Add the fields of trees to a page. `size` is the length of their text, which bounds the expansion of aliases."""
    room = 16 * size + (1 << 20)
    page.lost += [("", key) for key in _NAMES]  # the name of an item precedes its fields
    for tree in trees:
        if not tree.listed:
            page.addresses += [one for key, node in tree.items or () if key in _ADDRESSES for one in _texts(node)]
        for path, value, span in _leaves(tree, ()):
            if len(path) == 1 and path[0] in without:
                continue
            label = ": ".join(path)
            room -= len(label) + len(value) + 1
            if room < 0:
                raise Broken("its values unfold to many times the size of the file")
            page.blocks.append(_block(label, value, span or whole))


def _texts(node: Node) -> list[str]:
    return [one.text for _, one in node.items or () if one.items is None] if node.items is not None else [node.text]


def _block(label: str, value: str, span: tuple[int, int]) -> Block:
    text = value.strip() or NOTHING
    label = label if len(label) <= LONGEST_PATH else f"…{label[1 - LONGEST_PATH :]}"
    label = f"{folded(label)}: " if label else ""
    return Block("field", text, span=span, whole=len(text) <= LONGEST_WHOLE, label=label)


def _leaves(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, tuple[int, int] | None]]:
    if len(path) > 2 * LONGEST_NAME:
        raise Broken("an alias of it leads back to itself")
    if not node.items:  # a text, or an empty collection
        if path or node.text.strip():
            yield path, node.text, node.span
    elif not node.listed:
        for key, one in node.items:
            yield from _leaves(one, (*path, key))
    else:
        for (own, name), (_, one) in zip(list(_item_names(node)), node.items, strict=True):
            if one.items is None:
                yield from _leaves(one, path)
            elif one.listed:
                yield from _leaves(one, (*path, name))
            else:
                for key, part in one.items:
                    if key != own:
                        yield from _leaves(part, (*path, name, key))
                    elif len(one.items) == 1:
                        yield from _leaves(part, (*path, key))


def _item_names(node: Node) -> Iterator[tuple[str, str]]:
    """Yield, for every list item, the key that names it, if any, and a name that is unique in the list."""
    seen: Counter[str] = Counter()
    for number, (_, item) in enumerate(node.items or (), 1):
        own, name = "", str(number)
        if item.items and not item.listed:
            short = {key: one.text for key, one in item.items if not one.items and 0 < len(one.text) <= LONGEST_NAME}
            own = next((key for key in (*_NAMES, item.items[0][0]) if key in short), "")
            name = short[own] if own in _NAMES else f"{own} {short[own]}" if own else name
        seen[name] += 1
        yield own, name if seen[name] == 1 else f"{name} ({seen[name]})"
