"""Count code lines of src/kbgym and tests, without blank lines, comments and docstrings, and check them against limits.

    python scripts/count_lines.py [--max-total N] [--max-core N] [--max-files N] [--max-function N]
        [--max-tests N]

Prints code lines and files by package, in total, for the core and for the tests, and the longest function of src (all
its lines, from `def` to the end). Exits with 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "src" / "kbgym", ROOT / "tests"
CORE = ("store", "search", "trace", "gym", "training", "worlds", "agents/reference", "index_keys")
PLUGINS = ("worlds/phantomwiki", "worlds/people3")  # worlds that the paper does not describe
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
Definition = ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str, tree: ast.Module) -> int:
    """Return the number of lines that hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | Definition)
            and ast.get_docstring(node, clean=False) is not None
        ):
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def functions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the length and the name of every function."""
    for node in ast.walk(tree):
        if isinstance(node, Definition):
            yield (node.end_lineno or node.lineno) - node.lineno + 1, node.name


def is_core(package: str) -> bool:
    """Return True for the root modules and the packages of the core."""
    inside = any(package == name or package.startswith(f"{name}/") for name in CORE)
    return package == "." or (inside and not package.startswith(PLUGINS))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("total", "core", "files", "function", "tests"):
        parser.add_argument(f"--max-{name}", type=int, metavar="N")
    limits = vars(parser.parse_args())
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    longest = (0, "")
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        package = path.parent.relative_to(SOURCE).as_posix()
        lines[package] += code_lines(text, tree)
        files[package] += 1
        name = path.relative_to(SOURCE).as_posix()
        longest = max(longest, *((length, f"{name}:{one}") for length, one in functions(tree)), (0, ""))
    print(" lines  files  package")
    for package in lines:
        print(f"{lines[package]:6,} {files[package]:6}  {package}{' (core)' if is_core(package) else ''}")
    core = [package for package in lines if is_core(package)]
    found = {
        "total": lines.total(),
        "core": sum(lines[package] for package in core),
        "files": files.total(),
        "function": longest[0],
        "tests": 0,
    }
    for path in TESTS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found["tests"] += code_lines(text, ast.parse(text))
    print(f"{found['core']:6,} {sum(files[package] for package in core):6}  core in total")
    print(f"{found['total'] - found['core']:6,} {found['files'] - sum(files[p] for p in core):6}  plugins in total")
    print(f"{found['total']:6,} {found['files']:6}  in total")
    print(f"{found['tests']:6,} {sum(1 for _ in TESTS.rglob('*.py')):6}  tests")
    print(f"Longest function: {longest[1]}, {longest[0]} lines.")
    exceeded = [name for name in found if (limit := limits[f"max_{name}"]) is not None and found[name] > limit]
    for name in exceeded:
        print(f"--max-{name} {limits[f'max_{name}']} exceeded: {found[name]}", file=sys.stderr)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
