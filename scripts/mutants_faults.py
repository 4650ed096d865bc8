"""Faults: single small changes to a module's source that a test of it should detect.

Conditions, comparisons, and/or, not, sums, numbers, truth values, slices, any/all and min/max, what is returned, and
statements left out. Words, annotations, assertions, messages of errors and f-strings are left alone.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from itertools import accumulate
from typing import NamedTuple

_NAMES = "Lt LtE Gt GtE Eq NotEq In NotIn Is IsNot And Or Add Sub Mult Div FloorDiv".split()
_WORDS = "< <= > >= == != in not_in is is_not and or + - * / //".split()
_SIGNS: dict[type[ast.AST], str] = {
    getattr(ast, name): word.replace("_", " ") for name, word in zip(_NAMES, _WORDS, strict=True)
}
_PAIRS = "< <=, <= <, > >=, >= >, == !=, != ==, in not_in, not_in in, is is_not, is_not is, and or, or and"
_PAIRS += ", + -, - +, * /, / *, // *"
_KINDS = {sign: kind for kind, sign in _SIGNS.items()}
_OTHER = {_KINDS[a.replace("_", " ")]: _KINDS[b.replace("_", " ")] for a, b in map(str.split, _PAIRS.split(", "))}
_CALLED = {"any": "all", "all": "any", "min": "max", "max": "min"}
_EMPTY = {"str": "''", "bytes": "b''", "int": "0", "float": "0.0", "list": "[]", "dict": "{}", "tuple": "()"}
_EMPTY |= {"set": "set()", "frozenset": "frozenset()", "None": "None"}
_SEQUENCES = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp, ast.Dict)


class Fault(NamedTuple):
    """`text` is the line it is in, `change` what is done to it; the `nth` of its kind in the module.

    `function` is where the innermost function around it begins, 0 outside of functions.
    """

    function: int
    line: int
    text: str
    change: str
    nth: int
    start: int
    end: int
    put: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.put.encode() + source[self.end :]


def faults(source: bytes) -> list[Fault]:
    """Every fault a module can have, in the order of its lines."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda fault: (fault.start, fault.end, fault.change))


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes) -> None:
        self._lines = source.splitlines(keepends=True)
        self._offsets = [0, *accumulate(len(line) for line in self._lines)]
        self._function = 0
        self._returns: ast.expr | None = None
        self._kinds: Counter[tuple[str, str]] = Counter()
        self.found: list[Fault] = []

    def _put(self, node: ast.expr | ast.stmt, change: str, new: str) -> None:
        start = self._offsets[node.lineno - 1] + node.col_offset
        end = self._offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        text = self._lines[node.lineno - 1].decode().strip()
        self._kinds[text, change] += 1
        nth = self._kinds[text, change]
        self.found.append(Fault(self._function, node.lineno, text, change, nth, start, end, new))

    def _instead(self, node: ast.expr, change: str, new: ast.expr | str) -> None:
        self._put(node, change, f"({new if isinstance(new, str) else ast.unparse(new)})")

    def _decide(self, test: ast.expr, what: str, *values: str) -> None:
        """A condition that always or never holds; a name it binds would be missing if it were taken to hold."""
        binds = any(isinstance(node, ast.NamedExpr) for node in ast.walk(test))
        for value in values:
            if not (binds and value == "True") and not isinstance(test, ast.Constant):
                self._instead(test, f"{what} {value}", value)

    # -- what is left alone -------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        before = self._function, self._returns
        self._function = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        self._returns = node.returns
        for statement in node.body:
            self.visit(statement)
        self._function, self._returns = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Positions inside of them are wrong before Python 3.12."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Says what holds anyway."""

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":
            self.visit(node.value)

    # -- statements ---------------------------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call | ast.Await):
            self._put(node, "left out", "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._put(node, "left out", "pass")

    def visit_Break(self, node: ast.Break | ast.Continue | ast.Delete) -> None:
        self._put(node, "left out", "pass")

    visit_Continue = visit_Delete = visit_Break

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._put(node, "left out", "pass")
        self.visit(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        value, returns = node.value, self._returns
        if value is None:
            return
        if isinstance(returns, ast.BinOp):  # X | None
            returns = returns.right
        name = getattr(returns.value if isinstance(returns, ast.Subscript) else returns, "id", str(returns))
        if isinstance(returns, ast.Constant):
            name = str(returns.value)
        if name == "bool" and not isinstance(value, ast.Compare | ast.BoolOp | ast.Constant | ast.UnaryOp):
            self._instead(value, "not", f"not ({ast.unparse(value)})")
        elif name in _EMPTY and ast.unparse(value) != _EMPTY[name] and not isinstance(value, ast.Constant):
            self._instead(value, f"returns {_EMPTY[name]}", _EMPTY[name])
        self.visit(value)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return  # imported for annotations only
        self._decide(node.test, "if", "True", "False")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._decide(node.test, "while", "False")
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        if node.guard is not None:
            self._decide(node.guard, "case", "True", "False")
            self.visit(node.guard)
        for statement in node.body:
            self.visit(statement)

    # -- expressions --------------------------------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._decide(node.test, "if", "True", "False")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._decide(test, "if", "True")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            new = copy.deepcopy(node)
            new.ops[place] = _OTHER[type(operator)]()  # type: ignore[assignment]
            self._instead(node, _change(operator), new)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._instead(node, _change(node.op), ast.BoolOp(_OTHER[type(node.op)](), node.values))  # type: ignore[arg-type]
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._instead(node, "not left out", node.operand)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = _OTHER.get(type(node.op))
        words = any(isinstance(s, _SEQUENCES) and not _number(s) for s in (node.left, node.right))
        if other is not None and not words:
            self._instead(node, _change(node.op), ast.BinOp(node.left, other(), node.right))  # type: ignore[arg-type]
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._instead(node, f"{node.value} to {not node.value}", str(not node.value))
        elif isinstance(node.value, int | float):
            new = 0 if node.value == 1 else node.value + 1
            self._instead(node, f"{node.value} to {new}", str(new))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _CALLED:
            other = _CALLED[node.func.id]
            self._put(node.func, f"{node.func.id} to {other}", other)
        self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None:
                self._instead(bound, "one further", f"({ast.unparse(bound)}) + 1")
                if not _number(bound) and not isinstance(bound, ast.UnaryOp):
                    self.visit(bound)


def _number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _change(operator: ast.AST) -> str:
    return f"{_SIGNS[type(operator)]} to {_SIGNS[_OTHER[type(operator)]]}"
