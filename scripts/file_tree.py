"""Write docs/files.md: every source file with the first sentence of its docstring; `--check` says if it is stale."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "files.md"
HEAD = """# The source tree, a line a file

A newcomer who reads `store/store.py`, `gym/tools.py`, `gym/episode.py`, `agents/reference/reader.py` and
`training/train.py` has seen everything that matters. This page is written by
`scripts/file_tree.py` from the files' own docstrings.
"""


def first_sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", paragraph)[0].rstrip(".")


def page() -> str:
    lines = [HEAD]
    folders: dict[Path, list[Path]] = {}
    for path in sorted((ROOT / "src" / "kbgym").rglob("*.py")):
        folders.setdefault(path.parent, []).append(path)
    for folder, files in sorted(folders.items()):
        lines.append(f"\n## {folder.relative_to(ROOT / 'src')}\n")
        for path in files:
            if sentence := first_sentence(path):
                lines.append(f"- `{path.name}`: {sentence}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page() else "docs/files.md is stale")
    PAGE.write_text(page(), encoding="utf-8")
