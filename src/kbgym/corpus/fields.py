"""A tree of data as fields: one document a value, with the path of keys that leads to it.

    Angular: releases: cycle 17: eol: 2025-05-15

An item of a list is called by its name (`name`, `title`, `id` ...), else by its first key and value if that is short,
else by its number. Keys and values stand as the file has them; a value that is a text of several sentences is split
like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kbgym.corpus.blocks import Block, Broken, Page, Plain, folded
from kbgym.corpus.trees import Node

_NAMES = ("name", "title", "id", "key", "label", "slug")
_ADDRESSES = ("permalink", "url", "slug", "aliases", "redirect_from")
LONGEST_NAME = 80
LONGEST_PATH = 300
LONGEST_WHOLE = 200  # a value up to here is one document even if there is a full stop in it
NOTHING = "(no value)"


def field_page(trees: list[Node], size: int, whole: tuple[int, int]) -> Page:
    """A file of data as a page; `whole` is its place where a value has none of its own."""
    page = Page(folded(next((title for tree in trees if (title := tree.get("title", "name"))), "")))
    add_fields(page, trees, size, whole)
    return page


def add_fields(
    page: Page, trees: list[Node], size: int, whole: tuple[int, int], without: frozenset[str] = frozenset()
) -> None:
    """Put the fields of trees into a page. `size` is the length of their text: aliases may not unfold without end."""
    room = 16 * size + (1 << 20)
    page.lost += [("", key) for key in _NAMES]  # what an item is called stands before all it says
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
    text, plain = value.strip() or NOTHING, Plain()
    label = label if len(label) <= LONGEST_PATH else f"…{label[1 - LONGEST_PATH :]}"
    plain.add(text, span[0])
    return Block(
        "field", plain, span=span, whole=len(text) <= LONGEST_WHOLE, label=f"{folded(label)}: " if label else ""
    )


def _leaves(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, tuple[int, int] | None]]:
    if len(path) > 2 * LONGEST_NAME:
        raise Broken("an alias of it leads back to itself")
    if not node.items:  # a text, or a collection with nothing in it
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
    """For every item of a list the key that names it, if one does, and its name among its siblings."""
    seen: Counter[str] = Counter()
    for number, (_, item) in enumerate(node.items or (), 1):
        own, name = "", str(number)
        if item.items and not item.listed:
            short = {key: one.text for key, one in item.items if not one.items and 0 < len(one.text) <= LONGEST_NAME}
            own = next((key for key in (*_NAMES, item.items[0][0]) if key in short), "")
            name = short[own] if own in _NAMES else f"{own} {short[own]}" if own else name
        seen[name] += 1
        yield own, name if seen[name] == 1 else f"{name} ({seen[name]})"
