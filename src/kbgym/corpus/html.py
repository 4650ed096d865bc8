"""Conversion of HTML to Markdown, with selectolax, and of reStructuredText to HTML, with docutils.

Scripts, styles, navigation and forms are omitted and reported. The Markdown reader also uses this module for raw HTML.
Directives that include a file or insert raw output are disabled. Unknown directives and roles (Sphinx has many) are not
errors: their content is read like the rest, and objects of a domain carry their names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from kbgym.corpus.blocks import TABLES, Broken, folded
from kbgym.errors import Missing

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MOST_DEPTH = 200
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_SCRIPT, _LEFT_OUT, _NOT_CLOSED, _BLOCKS, _CODE = (
    frozenset(TABLES[name].split()) for name in ("script", "left_out", "not_closed", "blocks", "code_elements")
)
_ANY_BLOCK = ",".join(sorted(_BLOCKS))
_FOOTNOTES = ("doc-footnote", "doc-biblioentry")
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&])")
_BLOCK_START = re.compile(r"^(\s{0,100})(#{1,6}(?=\s)|[-+>=](?=\s|$)|-{2,}|={2,}|\d{1,9}+(?=[.)]\s))")
Lost = list[tuple[str, str]]


def html_to_markdown(text: str) -> tuple[str, str, Lost]:
    """Return an HTML text as Markdown, its title, and the omissions as pairs of kind and text."""
    writer = _Writer()
    root = _parse(text).root
    lines = writer.children(root) if root is not None else []
    return "\n".join(lines) + "\n", writer.title, writer.lost


def html_words(text: str) -> str:
    """Return all words between the tags of an HTML text."""
    root = _parse(text).root
    return root.text(deep=True, separator=" ") if root is not None else ""


def _parse(text: str) -> LexborHTMLParser:
    """Parse a text. Raise if its elements are nested too deep, which takes the library quadratic time."""
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError:
        raise Missing("reading HTML needs selectolax; run: pip install 'kbgym[documents]'") from None
    depth = 0
    for tag in _TAG.finditer(text):
        if tag[2].lower() not in _NOT_CLOSED:
            depth = max(0, depth - 1 if tag[1] else depth + 1)
            if depth > MOST_DEPTH:
                raise Broken(f"its elements are nested more than {MOST_DEPTH:,} deep")
    return LexborHTMLParser(f"<body>{text}")  # it keeps comments that precede everything else


class _Writer:
    """Writes nodes as lines of Markdown."""

    def __init__(self) -> None:
        self.title = ""
        self.lists = 0
        self.lost: Lost = []

    def children(self, node: LexborNode) -> list[str]:
        """Return the blocks in a node; text and inline elements between them form paragraphs."""
        lines, run = list[str](), ""
        for child in node.iter(include_text=True):
            tag = child.tag or ""
            if tag in _BLOCKS or (child.is_element_node and child.css_first(_ANY_BLOCK) is not None):
                lines += [*_paragraph(run), *self.block(child, tag)]
                run = ""
            else:
                run += self.inline(child, tag)
        return [*lines, *_paragraph(run)]

    def block(self, node: LexborNode, tag: str) -> list[str]:
        """Return the lines of a block, with an empty line after it."""
        if self._left_out(node, tag):
            return []
        if node.attributes.get("role") in _FOOTNOTES:
            return self._footnote(node)
        match tag:
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                heading = folded(self._line(node))
                return [f"{'#' * int(tag[1])} {heading}", ""] if heading else []
            case "ul" | "ol":
                mark = self._mark()
                return [line for item in node.iter() for line in indented(self.children(item), mark)]
            case "dl":
                return self._definitions(node)
            case "table":
                return self._table(node)
            case "pre":
                return fenced(node.text(deep=True).strip("\n"))
            case "hr":
                return []
        lines = self.children(node)
        if lines and "admonition" in (node.attributes.get("class") or "").split():  # a title and the text it introduces
            return [f"{lines[0].rstrip(':')}:", "", *indented(lines[2:], self._mark())]
        return lines

    def _footnote(self, node: LexborNode) -> list[str]:
        """Return a footnote without its label."""
        if (label := node.css_first(".label")) is not None:
            label.decompose()
        return [f"[^{_note_name(node.attributes.get('id'))}]: {folded(' '.join(self.children(node)))}", ""]

    def _mark(self) -> str:
        """Return the marker of a list's items, which differs from that of the preceding list."""
        self.lists += 1
        return "-+"[self.lists % 2] + " "

    def _definitions(self, node: LexborNode) -> list[str]:
        lines, term, used, mark = list[str](), "", True, self._mark()
        for child in [one for part in node.iter() for one in (part.iter() if part.tag == "div" else (part,))]:
            if child.tag == "dt":
                lines += [] if used else [f"{mark}{term}", ""]
                term, used = folded(self._line(child)).rstrip(":"), False
            else:
                body, used = self.children(child), True
                lines += indented([f"{term}:", "", *indented(body, "- ")] if term and body else body, mark)
        return [*lines, *([] if used else [f"{mark}{term}", ""])]

    def _table(self, node: LexborNode) -> list[str]:
        """Return a table; a row whose only heading is its first cell becomes a list item."""
        head, rows, sides, before = list[str](), list[list[str]](), list[str](), list[str]()
        mark = self._mark()
        for part in node.iter():
            if part.tag == "caption":
                before = [f"{folded(self._line(part))}:", ""]
            for row in [part] if part.tag == "tr" else part.iter():
                cells = [cell for cell in row.iter() if cell.tag in ("td", "th")]
                texts = [folded(self._line(cell)) for cell in cells]
                heads = sum(cell.tag == "th" for cell in cells)
                if not any(texts):
                    continue
                if heads == len(cells) and not head and not rows:
                    head = texts
                elif heads == 1 and not head:
                    sides.append(f"{mark}{texts[0]}: {'; '.join(filter(None, texts[1:]))}")
                else:
                    rows.append(texts)
        return [*before, *(table(head, rows) if head or rows else []), *sides, ""]

    def _line(self, node: LexborNode) -> str:
        """Return all content of a node as one line of text."""
        return "".join(self.inline(child, child.tag or "") for child in node.iter(include_text=True))

    def inline(self, node: LexborNode, tag: str) -> str:
        """Return an element inside a line."""
        if node.is_text_node:
            return escaped(re.sub(r"\s+", " ", node.text_content or ""))
        if node.is_comment_node:
            self.lost.append(("comment", node.comment_content or ""))
            return ""
        if self._left_out(node, tag):
            return ""
        if tag == "br":
            return "\n"
        if tag == "img":
            said = node.attributes.get("alt") or ""
            return f" {escaped(said)} " if said != node.attributes.get("src") else ""
        if node.attributes.get("role") == "doc-noteref":
            return f"[^{_note_name(node.attributes.get('href'))}]"
        kind = (node.attributes.get("class") or "").split()
        if tag in _CODE or "literal" in kind:
            return code_span(said) if (said := node.text(deep=True)).strip() else ""
        said = self._line(node)
        if "classifier" in kind:
            return f" : {said}"
        if tag == "a" and (target := unquote(node.attributes.get("href") or "")):
            if said.strip() and not set("<>\n") & set(target):
                return f"[{said.strip()}](<{target}>)"
            self.lost.append(("link target", target))
        return f" {said} " if tag in _BLOCKS or tag in ("td", "th", "tr") else said

    def _left_out(self, node: LexborNode, tag: str) -> bool:
        if tag == "title":
            self.title = self.title or folded(node.text(deep=True))[:1_000]
        elif tag in _SCRIPT or tag in _LEFT_OUT:
            if said := node.text(deep=True, separator=" ").strip():
                what = "table of contents" if node.attributes.get("role") == "doc-toc" else "navigation or form"
                self.lost.append(("script or style" if tag in _SCRIPT else what, said))
        elif tag != "head":
            return False
        if tag == "head":
            for child in node.iter(include_text=True):
                self.inline(child, child.tag or "")
        return True


def _note_name(address: str | None) -> str:
    return re.sub(r"[^0-9A-Za-z_-]", "-", (address or "").lstrip("#"))


def _paragraph(run: str) -> list[str]:
    lines = [guarded(folded(line)) for line in run.split("\n") if line.strip()]
    return [part for line in lines for part in (line, "")]


# -- pieces of Markdown ------------------------------------------------------------------------------------------------


def escaped(text: str) -> str:
    """Return a text with Markdown syntax escaped."""
    return _SPECIAL.sub(r"\\\1", text)


def guarded(line: str) -> str:
    """Return a line that cannot start a block other than a paragraph."""
    return _BLOCK_START.sub(lambda found: f"{found[0]}\\" if found[2][0].isdigit() else f"{found[1]}\\{found[2]}", line)


def code_span(text: str) -> str:
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{room}{folded(text) or ' '}{room}{ticks}"


def fenced(text: str) -> list[str]:
    """Return a code block."""
    ticks = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return [ticks, *text.split("\n"), ticks, ""]


def indented(lines: Sequence[str], mark: str) -> list[str]:
    """Return lines as one item of a list."""
    if not any(lines):
        return []
    return [f"{mark if not number else ' ' * len(mark)}{line}" if line else "" for number, line in enumerate(lines)]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table whose cells are Markdown; `head` may be empty."""
    width = max(map(len, [head, *rows]))
    lines = [head or [""] * width, ["---"] * width, *rows]
    return [*(f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in lines), ""]


# -- reStructuredText --------------------------------------------------------------------------------------------------

_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:+.-]+)::", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w:+.-]):([\w:+.-]{1,100}):`")
_CODE_DIRECTIVES, _OBJECTS = (frozenset(TABLES[name].split()) for name in ("code", "objects"))


def rst_to_html(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a reStructuredText as HTML, and the names of the directives in it."""
    try:
        from docutils.core import publish_parts
    except ImportError:
        if find_spec("docutils") is not None:  # it is installed, but one of its dependencies could not be loaded
            raise
        raise Missing("reading reStructuredText needs docutils; run: pip install 'kbgym[documents]'") from None
    names = _register(text)
    html = publish_parts(text, writer_name="html5", settings_overrides=TABLES["docutils"])["html_body"]
    return str(html), [("directive", name) for name in names]


def _register(text: str) -> list[str]:
    """Register every directive and role of a text with docutils; return the names of the directives."""
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives, roles
    from docutils.parsers.rst.languages import en
    from docutils.utils import new_document

    class Unknown(Directive):  # type: ignore[misc]
        """Any directive: its arguments are a paragraph, its content is read."""

        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True

        def run(self) -> list[nodes.Node]:
            holder = nodes.container()
            if self.arguments and (":" in self.name or self.name in _OBJECTS):
                return [self.described(holder)]
            said = f"{TABLES['said'].get(self.name, '')} {' '.join(self.arguments)}".strip()
            if self.name in _CODE_DIRECTIVES:
                code = "\n".join(self.content)
                return [nodes.literal_block(code, code)] if code.strip() else []
            if said.strip():
                parsed, _ = self.state.inline_text(said, self.lineno)
                holder += nodes.paragraph(said, "", *parsed)
            self.state.nested_parse(self.content, self.content_offset, holder)
            return [holder]

        def described(self, holder: nodes.Element) -> nodes.Node:
            """Return an object as a term, so that its whole description carries its name."""
            item, body = nodes.definition_list_item(), nodes.definition()
            item += nodes.term("", "", nodes.literal("", folded(" ".join(self.arguments))))
            for name, value in self.options.items():
                if value:
                    body += nodes.paragraph("", f"{name.capitalize()}: {value}")
            self.state.nested_parse(self.content, self.content_offset, body)
            if body.children:
                item += body
            holder += nodes.definition_list("", item)
            return holder

    document = new_document("")
    Unknown.option_spec = _Anything()
    names = sorted(set(_DIRECTIVE.findall(text)))
    for name in names:
        if name in _CODE_DIRECTIVES or directives.directive(name, en, document)[0] is None:
            directives.register_directive(name, Unknown)
    for name in set(_ROLE.findall(text)):
        known = name.lower() in en.roles or name.lower() in roles._role_registry
        if not known or name in ("pep", "rfc"):  # docutils has these, and Sphinx extends them
            roles.register_local_role(name, _role)
    return names


def _role(name: str, raw: str, said: str, line: int, inliner: Any, options: Any = None, content: Any = None) -> Any:
    """Read an unknown role: its words, as a link if it leads to a page."""
    from docutils import nodes

    said = said.replace("\0", "")
    words, _, target = said.removesuffix(">").rpartition("<") if said.endswith(">") else (said, "", said)
    words, target = words.strip() or target, target.strip()
    if name in ("doc", "ref", "numref") and target:
        return [nodes.reference(raw, words, refuri=target if name == "doc" else f"/{target}")], []
    if name in ("pep", "rfc"):
        words = f"{name.upper()} {words}" if words.isdigit() else words
        return [nodes.inline(raw, words)], []
    return [nodes.literal(raw, words.lstrip("~!"))], []


class _Anything(dict[str, Any]):
    """Options of an unknown directive: any name with any value."""

    def __getitem__(self, name: str) -> Any:
        return lambda value: value

    def __bool__(self) -> bool:
        return True
