"""Every `kbgym` line of the documentation is one the command line takes; what tests do not run, they say why not.

Lines in `sh` blocks are run (test_docs.py). All others, in `console` blocks, indented, or within a sentence, are
parsed: verb, options, values of options, and outside a sentence also that nothing required is missing.
"""

from __future__ import annotations

import re
import shlex

import click
import pytest
from test_docs import PAGES, commands

from kbgym.cli.main import app

# What a line that is not run has in it, and why it is not run.
WHY = {
    r"--agent (llm:|'?command:|codex)|my-agent": "asks a model or another program",
    r"--(agent|reader) small": "needs the small model's packages; tests/llm/test_local_model.py plays it",
    r"\b(view|watch|play)\b|serve .*(--mcp|--http)": "runs until it is stopped",
    r"postgresql://|--engine ray": "needs a database or a cluster; tests/trace, tests/protocol have both",
    r"experiment run": "takes minutes to hours; tests/cli run it small",
    r"hotpot|2wiki|musique|mixed|traffic\.jsonl": "reads files that do not come with kbgym",
    r"kbgym demo$": "takes a minute; tests/test_install.py runs it from a wheel",
    r"people 50000|runs/w50k": "takes half an hour; benchmarks/hundredfold.py runs it",
    r"generate --hard|baseline hipporag|--from stores/b3": "takes minutes; tests/baselines, tests/worlds run it small",
}


def shown(page) -> list[str]:
    """The lines that stand alone, whatever kind of block they are in."""
    joined = page.read_text(encoding="utf-8").replace("\\\n", " ")
    return [match[1] for match in re.finditer(r"^(?:\$ |    (?:.* -- )?)?(kbgym [a-z-]+ ?.*)$", joined, re.MULTILINE)]


def within(page) -> list[str]:
    """The lines that stand in a sentence, as code."""
    return re.findall(r"`(kbgym [^`]+)`", " ".join(page.read_text(encoding="utf-8").split()))


def parsed(line: str, whole: bool) -> None:
    """Fails with click's own sentence where the command line would not take the line."""
    words = [word for word in shlex.split(line, comments=True)[1:] if word != "..."]
    command, name = app, "kbgym"
    while isinstance(command, click.Group) and words and not re.search(r"\||^[A-Z-]", words[0]):
        name, command, words = words[0], command.get_command(click.Context(command), words[0]), words[1:]
        assert command is not None, f"there is no {name}: {line}"
    context = click.Context(command, info_name=name, resilient_parsing=not whole)
    given, _, _ = command.make_parser(context).parse_args(list(words))
    for option in command.params:
        value = given.get(option.name)
        if value in (None, ()) or not isinstance(value, str | tuple):
            assert not (whole and option.required), f"{option.name} is missing: {line}"
        elif not isinstance(option.type, click.Path) and not str(value).isupper():  # a path may have yet to be made
            option.type_cast_value(context, value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_line_takes_every_line(page):
    for line in shown(page):
        if re.match(r"kbgym [a-z-]+( |$)", line) and line.split()[1].rstrip(":") in app.list_commands(None):
            parsed(line, whole=True)
    for line in within(page):
        parsed(line, whole=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_not_run_has_a_reason(page):
    run = {" ".join(command.split()) for command in commands(page)}
    known = [line for line in shown(page) if line.split()[1] in app.list_commands(None)]
    left = [line for line in known if " ".join(line.split()) not in run]
    assert [line for line in left if not any(re.search(why, line) for why in WHY)] == []


@pytest.mark.parametrize(
    "line",
    ["kbgym examine runs/r0", "kbgym exam runs/r0 --sat x", "kbgym exam", "kbgym exam runs/r0 --ranking best"],
)
def test_a_line_it_does_not_take_is_noticed(line):
    with pytest.raises((click.ClickException, AssertionError)):
        parsed(line, whole=True)
