"""Plugins of another package: found by entry point, used by name, and one that is broken."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kbgym import plugins
from kbgym.errors import BadInput

MODULE = """
import click
from kbgym.agents.general.reader import GeneralReader

def echo(role):
    return GeneralReader

@click.command()
def hello():
    click.echo("hello from a plugin")
"""
ENTRIES = """[kbgym.agents]
echo = tiny_plugin:echo
broken = tiny_plugin:missing
[kbgym.commands]
hello = tiny_plugin:hello
"""


def run(folder, *arguments):
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *arguments], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def installed(tmp_path):
    """A folder with an installed package that has plugins."""
    about = tmp_path / "tiny_plugin-1.0.dist-info"
    about.mkdir()
    (tmp_path / "tiny_plugin.py").write_text(MODULE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    return tmp_path


def test_a_package_adds_a_command(installed):
    done = run(installed, "-c", "from kbgym.cli.main import run; run(['hello'])")
    assert (done.returncode, done.stdout) == (0, "hello from a plugin\n"), done.stderr


def test_a_package_adds_an_agent(installed):
    code = "from kbgym.agents.registry import make_agent; print(make_agent('echo', 'reader').__name__)"
    done = run(installed, "-c", code)
    assert done.stdout == "GeneralReader\n", done.stderr


def test_a_plugin_that_cannot_be_loaded_is_one_sentence(installed):
    code = (
        "from kbgym import plugins\ntry: plugins.load('kbgym.agents', 'broken')\nexcept Exception as e: print(repr(e))"
    )
    said = run(installed, "-c", code).stdout
    assert said.startswith("Failed(") and "broken" in said and said.count("\n") == 1


def test_our_own_plugins_need_no_installed_metadata():
    for group, table in plugins.BUILT_IN.items():
        assert table.keys() <= set(plugins.names(group))
    with pytest.raises(BadInput):
        plugins.load("kbgym.engines", "abacus")
