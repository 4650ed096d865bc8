"""reStructuredText as Markdown, with docutils: it reads the text, and what it found is written down again.

Directives that would include a file or insert raw output are off. Directives and roles nobody here knows (Sphinx has
many) are not errors: what they hold is read like the rest, and their names are said to be left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from kbgym.corpus.blocks import folded
from kbgym.corpus.markdown_text import code_span, escaped, fenced, guarded, indented, table
from kbgym.errors import Missing

_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:+.-]+)::", re.MULTILINE)
_ROLE = re.compile(r":([\w:+.-]+):`")
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "line_length_limit": 1 << 30,
    "_disable_config": True,
    "syntax_highlight": "none",
    "smart_quotes": False,
    "doctitle_xform": True,
    "sectsubtitle_xform": False,
}
_CODE = frozenset(
    "code-block sourcecode parsed-literal testcode testsetup doctest prompt ipython productionlist".split()
)
_SAID = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "seealso": "See also:",
}
_OBJECTS = frozenset(
    "function class method attribute data exception module option envvar confval setting describe object decorator"
    " property".split()
)
_BODY = ("paragraph", "rubric", "attribution", "caption", "legend", "subtitle", "line", "term", "field_name", "raw")


def rst_to_markdown(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A reStructuredText as Markdown, and what is not in it: what it is, and its text."""
    try:
        from docutils.core import publish_doctree
    except ImportError:
        if find_spec("docutils") is not None:  # it is there, but something it needs could not be loaded
            raise
        raise Missing("reading reStructuredText needs docutils; run: pip install 'kbgym[documents]'") from None
    _register(text)
    tree = publish_doctree(text, settings_overrides=_SETTINGS)
    writer = _Writer()
    lines = writer.block(tree)
    return "\n".join(lines) + "\n", writer.lost


def _register(text: str) -> None:
    """Make docutils know every directive and role of a text."""
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives, roles
    from docutils.parsers.rst.languages import en
    from docutils.utils import new_document

    class Unknown(Directive):  # type: ignore[misc]
        """Whatever it is called: its arguments are a paragraph, its content is read."""

        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True

        def run(self) -> list[nodes.Node]:
            holder = nodes.container(names=[self.name])
            if self.arguments and (":" in self.name or self.name in _OBJECTS):
                return [self.described(holder)]
            said = f"{_SAID.get(self.name, '')} {' '.join(self.arguments)}".strip()
            if self.name in _CODE:
                code = "\n".join(self.content)
                return [nodes.literal_block(code, code)] if code.strip() else []
            if said.strip():
                parsed, _ = self.state.inline_text(said, self.lineno)
                holder += nodes.paragraph(said, "", *parsed)
            self.state.nested_parse(self.content, self.content_offset, holder)
            return [holder]

        def described(self, holder: nodes.Element) -> nodes.Node:
            """Return an object as a term, so that everything said of it carries its name."""
            item, body = nodes.definition_list_item(), nodes.definition()
            item += nodes.term("", "", nodes.literal("", folded(" ".join(self.arguments))))
            self.state.nested_parse(self.content, self.content_offset, body)
            if body.children:
                item += body
            holder += nodes.definition_list("", item)
            return holder

    def unknown(
        name: str, raw: str, said: str, line: int, inliner: Any, options: Any = None, content: Any = None
    ) -> Any:
        said = said.replace("\0", "")
        words, _, target = said.removesuffix(">").rpartition("<") if said.endswith(">") else (said, "", said)
        words, target = words.strip() or target, target.strip()
        if name in ("doc", "ref", "numref") and target:
            return [nodes.reference(raw, words, refuri=target if name == "doc" else f"/{target}")], []
        if name in ("pep", "rfc"):
            words = f"{name.upper()} {words}" if words.isdigit() else words
            return [nodes.inline(raw, words)], []
        return [nodes.literal(raw, words.lstrip("~!"))], []

    document = new_document("")
    Unknown.option_spec = _Anything()
    for name in set(_DIRECTIVE.findall(text)):
        if name in _CODE or directives.directive(name, en, document)[0] is None:
            directives.register_directive(name, Unknown)
    for name in set(_ROLE.findall(text)):
        known = name.lower() in en.roles or name.lower() in roles._role_registry
        if not known or name in ("pep", "rfc"):  # which docutils has, and Sphinx with more in them
            roles.register_local_role(name, unknown)


class _Anything(dict[str, Any]):
    """ReadingOptions of a directive nobody knows: every name is allowed, with any value."""

    def __getitem__(self, name: str) -> Any:
        return lambda value: value

    def __bool__(self) -> bool:
        return True


class _Writer:
    """Nodes of docutils as lines of Markdown."""

    def __init__(self) -> None:
        self.lost: list[tuple[str, str]] = []
        self.level = 1

    def block(self, node: Any) -> list[str]:
        """A node that is not inside a line, with an empty line after it."""
        kind = type(node).__name__
        match kind:
            case "title" | "rubric":
                return [f"{'#' * min(self.level, 6)} {folded(self.inline(node))}", ""]
            case "section" | "document":
                return self._section(node)
            case "literal_block" | "doctest_block" | "math_block":
                return fenced(node.astext())
            case "bullet_list" | "enumerated_list":
                return [line for item in node.children for line in indented(self.children(item), "- ")]
            case "definition_list":
                return self._pairs([(item.children[0], item.children[1:]) for item in node.children if item.children])
            case "field_list" | "option_list" | "docinfo":
                return self._pairs([(one.children[0], one.children[1:]) for one in self._flat(node)])
            case "table":
                return self._table(node)
            case "footnote" | "citation":
                return self._footnote(node)
            case "comment":
                self.lost.append(("comment", node.astext()))
            case "image":
                return [f"![{escaped(str(node.get('alt', '')))}]({node.get('uri', '')})", ""]
            case "target" | "substitution_definition" | "pending" | "system_message" | "meta":
                self.lost.append(("directive", f"{node.get('refuri', '')} {node.astext()}".strip()))
            case "topic" if "contents" in node.get("classes", ()):
                self.lost.append(("table of contents", node.astext()))
            case "line_block":
                return [
                    *(f"{folded(self.inline(line))}  " for line in node.findall() if type(line).__name__ == "line"),
                    "",
                ]
            case _ if kind in _BODY or not node.children or type(node.children[0]).__name__ == "Text":
                return [*(guarded(line.strip()) for line in self.inline(node).split("\n") if line.strip()), ""]
            case _:
                return self._other(node, kind)
        return []

    def children(self, node: Any) -> list[str]:
        return [line for child in node.children for line in self.block(child)]

    def _other(self, node: Any, kind: str) -> list[str]:
        """Notes, warnings, containers, quotations: what they hold, and what kind of note it is."""
        if names := node.get("names") if kind == "container" else None:
            self.lost += [("directive", name) for name in names]
        said = self.children(node)
        named = kind in ("note", "warning", "tip", "hint", "important", "caution", "danger", "error", "attention")
        return [f"{kind.capitalize()}:", "", *indented(said, "- ")] if named and said else said

    def _section(self, node: Any) -> list[str]:
        lines = []
        for child in node.children:
            if type(child).__name__ == "section":
                self.level += 1
                lines += self.block(child)
                self.level -= 1
            else:
                lines += self.block(child)
        return lines

    def _flat(self, node: Any) -> Iterator[Any]:
        """Every field with a name and a body; docinfo has a node of its own kind for the common ones."""
        from docutils import nodes

        for one in node.children:
            if len(one.children) >= 2 and type(one.children[0]).__name__ in ("field_name", "option_group"):
                yield one
            else:
                name = type(one).__name__
                body = nodes.field_body("", nodes.paragraph("", one.astext()))
                yield nodes.field("", nodes.field_name("", name.capitalize()), body)

    def _pairs(self, pairs: list[tuple[Any, list[Any]]]) -> list[str]:
        """Terms with what is said of them, as items of a list: `term: its definition`."""
        lines: list[str] = []
        for term, rest in pairs:
            also = [one for one in rest if type(one).__name__ == "classifier"]
            name = " : ".join(folded(self.inline(one)) for one in (term, *also))
            body = [line for one in rest if one not in also for line in self.children(one)]
            if len([line for line in body if line]) == 1 and not body[0].startswith(("- ", "```", "|", "#")):
                lines += [f"- {name}: {body[0].lstrip()}", ""]
            else:
                lines += indented([f"{name}:", "", *indented(body, "- ")] if body else [name, ""], "- ")
        return lines

    def _table(self, node: Any) -> list[str]:
        rows: list[list[str]] = []
        heads = 0
        before: list[str] = []
        for part in node.findall():
            kind = type(part).__name__
            if kind == "title":
                before = [f"{folded(self.inline(part))}:", ""]
            elif kind == "row":
                rows.append([" ".join(self._cell(entry).split()) for entry in part.children])
                heads += type(part.parent).__name__ == "thead"
        if not rows:
            return before
        width = max(map(len, rows))
        columns = zip(*([*row, *[""] * (width - len(row))] for row in rows[:heads]), strict=True)
        return [*before, *table([" ".join(filter(None, column)) for column in columns], rows[heads:])]

    def _cell(self, entry: Any) -> str:
        return " ".join(self.inline(one) for one in entry.children)

    def _footnote(self, node: Any) -> list[str]:
        label, *rest = node.children
        if type(label).__name__ != "label":
            rest, label = node.children, None
        name = label.astext() if label is not None else (node.get("names") or node.get("ids") or ["*"])[0]
        body = [line for one in rest for line in self.block(one)]
        said = " ".join(line for line in body if line)
        return [f"[^{re.sub(r'[^0-9A-Za-z_-]', '-', name)}]: {said}", ""]

    # -- inside a line ------------------------------------------------------------------------------------------------

    def inline(self, node: Any) -> str:
        kind = type(node).__name__
        match kind:
            case "Text":
                return escaped(str(node).replace("\0", ""))
            case "literal" | "math":
                return code_span(node.astext())
            case "footnote_reference" | "citation_reference":
                return f"[^{re.sub(r'[^0-9A-Za-z_-]', '-', node.astext())}]"
            case "reference":
                said, target = "".join(map(self.inline, node.children)), str(node.get("refuri", ""))
                if not target or target == node.astext():
                    return said
                return f"[{said}](<{target}>)" if not set("<>\n") & set(target) else said
            case "image":
                return f"![{escaped(str(node.get('alt', '')))}](<{node.get('uri', '')}>)"
            case "target" | "substitution_definition" | "system_message" | "problematic" if not node.astext():
                return ""
            case "comment":
                self.lost.append(("comment", node.astext()))
                return ""
        between = "" if kind in _INLINE else " "
        return between.join(map(self.inline, node.children))


_INLINE = frozenset(
    "paragraph title rubric term field_name emphasis strong inline title_reference problematic generated subscript"
    " superscript abbreviation acronym line caption attribution subtitle reference option_string"
    " option_argument".split()
)
