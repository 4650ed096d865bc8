"""Actions and results: the values exchanged between an agent and the store.

Both are immutable, tagged with their name, and recorded in the trace unchanged. `tools.py` defines the schemas,
`environment.py` the effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec


class _Value(msgspec.Struct, frozen=True, tag=True, tag_field="tool", forbid_unknown_fields=True, gc=False):
    """Base of actions: immutable, tagged with the tool's name, with text fields only."""


class Search(_Value, frozen=True, tag="search"):
    """Show one page of search results.

    Attributes:
        query: The words to search for.
        page: The page of results, from 1.
    """

    query: str
    page: int = 1


class Read(_Value, frozen=True, tag="read", omit_defaults=True):
    """Show a document with the texts of its links.

    Attributes:
        id: The document to show.
        page: The page of its links, from 1.
        about: Only links whose text shares words with this, best first; empty for all.
    """

    id: str
    page: int = 1
    about: str = ""


class Answer(_Value, frozen=True, tag="answer"):
    """End a pass of the reader with an answer.

    Attributes:
        text: The answer; "unknown" if the store does not say.
    """

    text: str


class Add(_Value, frozen=True, tag="add"):
    """Add a document.

    Attributes:
        text: The text of the new document.
    """

    text: str


class Edit(_Value, frozen=True, tag="edit"):
    """Replace the text of a document.

    Attributes:
        id: The document to change.
        text: Its new text.
    """

    id: str
    text: str


class Delete(_Value, frozen=True, tag="delete"):
    """Delete a document with its links.

    Attributes:
        id: The document to delete.
    """

    id: str


class Link(_Value, frozen=True, tag="link"):
    """Add a link between two documents.

    Attributes:
        source: The document that gets the link.
        target: The document it leads to.
    """

    source: str
    target: str


class LinkMany(_Value, frozen=True, tag="link_many"):
    """Add links from one document to at most forty others.

    Attributes:
        source: The document that gets the links.
        targets: The documents they lead to.
    """

    source: str
    targets: tuple[str, ...]


class Unlink(_Value, frozen=True, tag="unlink"):
    """Remove a link between two documents.

    Attributes:
        source: The document that has the link.
        target: The document it leads to.
    """

    source: str
    target: str


class Correct(_Value, frozen=True, tag="correct"):
    """A correction in a person's words, and the documents it supersedes. It is not a tool of any role."""

    text: str
    supersedes: tuple[str, ...] = ()


class Done(_Value, frozen=True, tag="done"):
    """End a pass of the curator."""


class Invalid(_Value, frozen=True, tag="invalid"):
    """A call that is not a valid action: the shortened tool name and the reason."""

    name: str
    reason: str


Action = Search | Read | Answer | Add | Edit | Delete | Link | LinkMany | Unlink | Correct | Done | Invalid


class _Result(msgspec.Struct, frozen=True, tag=True, tag_field="result", omit_defaults=True, gc=False):
    """Base of results, which refer to documents by id. Texts are looked up when a result is rendered."""


class Learnt(msgspec.Struct, frozen=True, gc=False):
    """A trained index that matches a query: its first targets, and the number of its links."""

    index: str
    targets: tuple[str, ...]
    total: int


class Found(_Result, frozen=True, tag="found"):
    """A page of results; `learnt` are the indexes in its reserved slot."""

    ids: tuple[str, ...]
    page: int
    learnt: tuple[Learnt, ...] = ()


class Opened(_Result, frozen=True, tag="opened"):
    """A document and its links, or a page of them: then `total` is the number of (matching) links, on `pages` pages.

    `near` are the documents before and after it on its page of the source.
    """

    id: str
    links: tuple[str, ...]
    page: int = 1
    pages: int = 0
    total: int = 0
    near: tuple[str, ...] = ()


class Answered(_Result, frozen=True, tag="answered"):
    """The answer was submitted."""


class Added(_Result, frozen=True, tag="added"):
    id: str


class Merged(_Result, frozen=True, tag="merged"):
    """The text was a duplicate of `into`. `gone` is the document that was merged into it, if any."""

    into: str
    gone: str | None = None


class Edited(_Result, frozen=True, tag="edited"):
    id: str


class Deleted(_Result, frozen=True, tag="deleted"):
    id: str


class Linked(_Result, frozen=True, tag="linked"):
    source: str
    linked: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    itself: bool = False


class Unlinked(_Result, frozen=True, tag="unlinked"):
    source: str
    target: str


class Corrected(_Result, frozen=True, tag="corrected"):
    id: str
    supersedes: tuple[str, ...] = ()


class Finished(_Result, frozen=True, tag="finished"):
    """The pass of the curator is over."""


class Error(_Result, frozen=True, tag="error"):
    """An action that changed nothing; the message is the observation."""

    message: str


# The results that changed a store, and the kind of change.
EDITS: dict[type, str] = {
    Added: "add",
    Corrected: "correct",
    Edited: "edit",
    Merged: "merge",
    Deleted: "delete",
    Linked: "link",
    Unlinked: "unlink",
}

Result = (
    Found | Opened | Answered | Added | Merged | Edited | Deleted | Linked | Unlinked | Corrected | Finished | Error
)


class ShownDocument(msgspec.Struct, frozen=True, gc=False):
    """A document in an observation. `links` is its number of links, if the observation tells it; `mirrors` are the ids
    of documents omitted because they state the same fact from the other end, `superseded_by` those of corrections."""

    id: str
    text: str
    links: int | None = None
    mirrors: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()


class Observation(msgspec.Struct, frozen=True):
    """The observation of an action: a text, and the documents in it in the order shown."""

    text: str
    documents: tuple[ShownDocument, ...] = ()

    @property
    def ids(self) -> set[str]:
        """Return the ids of all documents shown or mentioned as mirrors."""
        return {id for document in self.documents for id in (document.id, *document.mirrors)}


NOTHING = Observation("")

# A function that returns the text and the links of a document.
Look = Callable[[str], tuple[str, Sequence[str]]]


def changed_in(result: Result) -> tuple[str, ...]:
    """Return the ids of the documents a result added, changed or removed."""
    match result:
        case Merged(into, gone):
            return (into,) if gone is None else (into, gone)
        case Added(id) | Edited(id) | Deleted(id) | Linked(id) | Unlinked(id) | Corrected(id):
            return (id,)
    return ()


def shown_by(result: Result) -> tuple[str, ...]:
    """Return the ids of the documents whose text an agent reads in a result, in order."""
    match result:
        case Found(ids, _, learnt):
            return tuple(dict.fromkeys((*ids, *(id for one in learnt for id in (one.index, *one.targets)))))
        case Opened(id, links, near=near):
            return (id, *links, *(other for other in near if other not in links))
        case Added(id) | Edited(id) | Merged(id) | Corrected(id):
            return (id,)
    return ()
