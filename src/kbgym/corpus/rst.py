"""Reader of reStructuredText, which docutils converts to HTML.

Directives that include a file or insert raw output are disabled. Unknown directives and roles (Sphinx has many) are not
errors: their content is read like the rest, and objects of a domain carry their names.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from kbgym.corpus.blocks import folded
from kbgym.errors import Missing

_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:+.-]+)::", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w:+.-]):([\w:+.-]{1,100}):`")
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
    "math_output": "LaTeX",
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


def rst_to_html(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a reStructuredText as HTML, and the names of the directives in it."""
    try:
        from docutils.core import publish_parts
    except ImportError:
        if find_spec("docutils") is not None:  # it is installed, but one of its dependencies could not be loaded
            raise
        raise Missing("reading reStructuredText needs docutils; run: pip install 'kbgym[documents]'") from None
    names = _register(text)
    html = publish_parts(text, writer_name="html5", settings_overrides=_SETTINGS)["html_body"]
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
        if name in _CODE or directives.directive(name, en, document)[0] is None:
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
