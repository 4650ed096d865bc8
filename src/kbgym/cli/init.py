"""`kbgym init`: write a project's kbgym.toml and import its documents."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kbgym.cli.common import Printed, is_silent, verb
from kbgym.cli.settings import FILE, Project
from kbgym.errors import BadInput
from kbgym.worlds.world import World

TEMPLATE = Path(__file__).with_name(FILE)
_SOURCE = click.Path(path_type=Path, exists=True)


@verb("init")
@click.argument("folder", required=False, type=_SOURCE)
@click.option("--questions", type=_SOURCE, help="Questions with answers: CSV, JSON or JSONL.")
def command(folder: Path | None, questions: Path | None) -> Printed:
    """Write kbgym.toml into the current folder and import the documents in FOLDER.

    Every verb run beside the file takes its world, run and settings from it. Without FOLDER an existing kbgym.toml is
    accepted, with the agents and endpoints it names, and its documents are imported.

    \b
    Example:
      kbgym init notes --questions questions.csv
      kbgym prove
    """
    file = Path.cwd() / FILE
    exists = file.exists()
    if exists and folder is not None:
        raise BadInput(f"{FILE} exists already; edit it, or remove it to start again.")
    if not exists and folder is None:
        raise BadInput(f"there is no {FILE} here; name the folder of your documents: kbgym init FOLDER.")
    if not exists:
        file.write_text(_text(str(folder), questions), encoding="utf-8")
    try:
        project = Project.load(Path.cwd())
        project.accept()
        place = Path(project.values["world"])
        if not place.exists():
            _import()
    except BaseException:
        if not exists:
            file.unlink()
        raise
    world = World.load(place)
    result = {"config": str(file), "documents": len(world.documents), "questions": len(world.questions)}
    step = (
        "kbgym prove"
        if world.split("train")
        else f"kbgym questions suggest {place} --agent llm:PROVIDER/MODEL --out questions.csv"
    )
    return result, f"{FILE} {'accepted' if exists else 'written'}; edit it to change settings.\nNext: {step}"


def _text(folder: str, questions: Path | None) -> str:
    """Return the template with the documents and questions filled in."""
    asked = f"questions = {json.dumps(str(questions))}" if questions else '# questions = "questions.csv"'
    text = TEMPLATE.read_text(encoding="utf-8")
    return text.replace("{documents}", json.dumps(folder)).replace("{questions}", asked)


def _import() -> None:
    """Run `kbgym import corpus`, which reads the same file."""
    from kbgym.cli.corpus import corpus_command

    corpus_command.main(["--quiet"] if is_silent() else [], prog_name="kbgym import corpus", standalone_mode=False)
