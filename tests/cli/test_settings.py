"""Settings from kbgym.toml, the environment and `--set`, and `kbgym init`, which writes the file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from kbgym.agents.trust import is_trusted
from kbgym.cli.corpus import TEMPLATE
from kbgym.cli.main import app
from kbgym.cli.settings import FILE, KEYS, Command, Project, option, options, place, verb_settings
from kbgym.errors import BadInput
from kbgym.gym.environment import RANKINGS
from kbgym.gym.observations import OBSERVATIONS

Kbgym = Callable[..., tuple[int, str, str]]
NOTES = {"boats.md": "# Kestrel\n\nThe Kestrel belongs to Ann Lind. The Kestrel lies at berth four.\n"}
ASKED = "question,answer,split\nWho owns the Kestrel?,Ann Lind,train\nWhere does the Kestrel lie?,berth four,test_in\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: documents, questions and no project file."""
    (tmp_path / "notes").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "notes" / name).write_text(text)
    (tmp_path / "questions.csv").write_text(ASKED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KBGYM_EMBEDDER", "hash")
    return tmp_path


@click.command(cls=Command)
@place("STORE")
@click.argument("query")
@options("epochs", "temperature", "eval", "set")
@option("run", "--out", "out")
def probe(**given: object) -> None:
    click.echo(json.dumps(given, default=str))


def called(*arguments: str) -> dict[str, object]:
    """Return what the verb above was given."""
    context = probe.make_context("probe", list(arguments))
    return {name: str(value) if isinstance(value, Path) else value for name, value in context.params.items()}


def test_a_flag_wins_over_set_and_that_over_the_environment_and_that_over_the_file(folder, monkeypatch):
    (folder / FILE).write_text("[training]\nepochs = 5\n")
    assert called("s", "q")["epochs"] == 5
    monkeypatch.setenv("KBGYM_EPOCHS", "4")
    assert called("s", "q")["epochs"] == 4
    assert called("s", "q", "--set", "epochs=3")["epochs"] == 3
    assert called("s", "q", "--set", "epochs=3", "--epochs", "2")["epochs"] == 2


def test_a_setting_without_a_flag_has_its_type(folder):
    found = called("s", "q", "--set", "temperature=0.5", "--set", "eval=false", "--set", "neither")
    assert (found["temperature"], found["eval"], found["set_name"]) == (0.5, False, "neither")


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (("--temperature", "0.5"), "temperature", 0.5),
        (("--temperature=0.5",), "temperature", 0.5),
        (("--no-eval",), "eval", False),
        (("--eval",), "eval", True),
    ],
)
def test_a_setting_without_a_flag_can_be_given_like_one(folder, arguments, key, value):
    assert called("s", "q", *arguments)[key] == value


def test_only_settings_of_the_verb_can_be_given_like_a_flag(folder):
    for arguments in (("--workers", "2"), ("--temperature",), ("--", "--temperature", "0.5")):
        with pytest.raises(click.UsageError):
            called("s", "q", *arguments)


@pytest.mark.parametrize("text", ["temperatur=1", "temperature=hot", "workers=2"])
def test_set_rejects_other_keys_and_values(folder, text):
    with pytest.raises(click.BadParameter):
        called("s", "q", "--set", text)


def test_a_place_that_is_left_out_comes_from_the_file(folder):
    with pytest.raises(click.MissingParameter):
        called("q")
    (folder / FILE).write_text('world = "raw"\nrun = "there"\n')
    assert called("q")["place"] == "raw", "there is no run yet"
    (folder / "there").mkdir()
    assert called("q") == {**called("there", "q"), "query": "q"}
    assert (called("q")["place"], called("here", "q")["place"], called("q")["out"]) == ("there", "here", "there")


@pytest.mark.parametrize(
    "text", ["epochs = 5", "[training]\nepoch = 1", "[training]\nepochs = 'x'", "run = [1]", "[", "world = {a = 1}"]
)
def test_a_bad_file_is_an_error_of_bad_input(folder, text):
    (folder / FILE).write_text(text)
    with pytest.raises(BadInput):
        Project.load(folder)


def test_the_choices_are_those_of_the_settings():
    assert (*KEYS["ranking"].type,) == RANKINGS and (*KEYS["observations"].type,) == OBSERVATIONS


def test_help_all_lists_the_settings_that_help_counts(kbgym: Kbgym):
    short, full = kbgym("exam", "--help")[1], kbgym("exam", "--help-all")[1]
    assert "temperature" not in short and "--help-all" in short
    assert all(key in full for key in ("temperature", "ranking", "embedder"))


def test_the_template_holds_known_keys_only(folder):
    text = TEMPLATE.read_text().replace("{documents}", '"notes"').replace("{questions}", 'questions = "q.csv"')
    (folder / FILE).write_text(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE))
    assert {"documents", "agent", "search", "gate", "max_cost", "base_url", "world"} <= Project.load(
        folder
    ).values.keys()


def test_init_then_every_verb_needs_no_path(folder, kbgym: Kbgym):
    code, text, error = kbgym("init", "notes", "--questions", "questions.csv", "--json")
    assert code == 0, error
    found = json.loads(text)
    assert (found["config"], found["questions"]) == (str(folder / FILE), 2)
    assert kbgym("train", "--epochs", "1", "--set", "eval=false", "--quiet")[0] == 0
    assert json.loads(kbgym("exam", "--json")[1])["n"] == 1
    assert json.loads(kbgym("store", "search", "Kestrel", "--json")[1])["results"]
    assert kbgym("audit", "--quiet")[0] == 0 and kbgym("store", "replay", "--quiet")[0] == 0
    assert kbgym("init", "notes")[0] == 2, "an existing file is never overwritten"


def test_an_init_that_fails_leaves_no_file(folder, kbgym: Kbgym):
    (folder / "questions.csv").write_text("nothing of the kind\n")
    assert kbgym("init", "notes", "--questions", "questions.csv")[0] == 2
    assert not (folder / FILE).exists()
    assert kbgym("init")[0] == 2


@pytest.mark.parametrize("line", ['agent = "evil:make"', 'curator = "command:rm"', '[models]\nbase_url = "http://x"'])
def test_what_a_file_would_run_is_accepted_first(folder, kbgym: Kbgym, line):
    assert kbgym("init", "notes", "--questions", "questions.csv", "--quiet")[0] == 0
    text = (folder / FILE).read_text()
    table, line = ("[models]", line.partition("\n")[2]) if "\n" in line else ("[agents]", line)
    (folder / FILE).write_text(text.replace(table, f"{table}\n{line}"))
    assert kbgym("train")[0] == 2 and not is_trusted(str(folder), "evil:make")
    assert kbgym("init", "--quiet")[0] == 0
    key = line.partition(" ")[0]
    assert Project.load(folder).accepted(key)


def test_every_setting_is_taken_by_a_verb():
    taken = {key for _, command in verbs(app) for key in verb_settings(command)}
    assert set(KEYS) <= taken | {"documents", "questions"}


def verbs(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, click.Command]]:
    """Return every command that is no group, by its words."""
    found: list[tuple[str, click.Command]] = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        more = verbs(command, (*path, name)) if isinstance(command, click.Group) else []
        found += more or [(" ".join((*path, name)), command)]
    return found


def test_the_command_line_stays_small():
    """At most 24 verbs, 80 names of options, and 15 options in the help of a verb."""
    names: set[str] = set()
    for verb, command in verbs(app):
        listed = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
        names |= {name for one in listed for name in one.opts if name.startswith("--")}
        assert len(listed) <= 15, verb
    assert len(names) <= 80, len(names)
    assert len(app.list_commands(click.Context(app))) <= 24
