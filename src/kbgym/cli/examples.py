"""`kbgym examples`: list the examples in this package, or copy one."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

import kbgym
from kbgym.cli.common import Printed, verb
from kbgym.errors import BadInput

EXAMPLES = {
    "harbour": "Notes of a harbour office in Markdown, text and CSV: 7 files and 20 questions.",
    "skarn": "The handbook of an observatory in linked Markdown pages: 61 files and 88 questions.",
}


@verb("examples")
@click.argument("action", type=click.Choice(["copy"]), required=False)
@click.argument("name", type=click.Choice(list(EXAMPLES)), required=False)
@click.option("--out", type=click.Path(path_type=Path), help="The folder to create.  [default: ./NAME]")
def command(action: str | None, name: str | None, out: Path | None) -> Printed:
    """List the examples, or copy one into a new folder.

    \b
    Example:
      kbgym examples copy harbour
      cd harbour
      kbgym init notes --questions questions.csv
    """
    if action is None:
        return {"examples": list(EXAMPLES)}, [f"{one:9} {text}" for one, text in EXAMPLES.items()]
    if name is None:
        raise BadInput(f"name the example to copy: {', '.join(EXAMPLES)}.")
    target = out or Path(name)
    if target.exists():
        raise BadInput(f"{target} exists already; name another folder with --out.")
    shutil.copytree(_folder() / name, target)
    (documents,) = (path for path in target.iterdir() if path.is_dir())
    (questions,) = target.glob("questions.*")
    lines = [
        f"Copied to {target}. Next:",
        f"  cd {target}",
        f"  kbgym init {documents.name} --questions {questions.name}",
    ]
    return {"out": str(target), "documents": str(documents), "questions": str(questions)}, lines


def _folder() -> Path:
    """Return the folder of the examples: in the installed package, else in the source tree."""
    package = Path(kbgym.__file__).parent
    installed = package / "examples"
    return installed if installed.is_dir() else package.parents[1] / "examples"
