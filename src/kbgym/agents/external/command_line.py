"""Command lines of agents: their placeholders, the predefined ones, and the environment of a process.

A command line is split like a shell's but never run by one. A placeholder is replaced inside its argument, so a
question's text stays one argument.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from importlib.resources import files

import msgspec.toml

from kbgym.errors import BadInput

PREFIX = "command:"
_PLACEHOLDER = re.compile(r"\{(prompt|prompt_file|mcp_config|mcp_url|token|question|bridge)\}")
_TOLD = {"prompt", "prompt_file", "question"}
# Required for the program, its user's settings and the network; no keys, and no variables of kbgym.
_SEEN = frozenset(
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM TMPDIR SYSTEMROOT SSL_CERT_FILE SSL_CERT_DIR "
    "NODE_EXTRA_CA_CERTS HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy "
    "XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR".split()
)
USAGE_FROM = "KBGYM_USAGE_FROM"  # path of the usage in the output, for lines that do not name one
PASSED_ON = "KBGYM_PASS_ENV"  # comma-separated names of additional variables that the user passes through


class CommandLine(msgspec.Struct, frozen=True):
    """The command that starts an agent: arguments, files in its folder, and environment variables.

    `at_once` limits the number of processes, where the program needs it. `usage` is a path in its output.
    """

    arguments: tuple[str, ...]
    files: dict[str, str] = {}
    variables: tuple[str, ...] = ()
    handed: dict[str, str] = {}
    at_once: int = 0
    usage: str = ""

    @property
    def reads_prompt(self) -> bool:
        """Return True if the prompt goes to standard input: no argument holds the prompt or the question."""
        return not any(name in _TOLD for text in self.arguments for name in _PLACEHOLDER.findall(text))


def filled(text: str, values: Mapping[str, str], quoted: bool = False) -> str:
    """Return a text with its placeholders replaced, once: placeholders inside a value are not replaced."""

    def value(found: re.Match[str]) -> str:
        return json.dumps(values[found[1]])[1:-1] if quoted else values[found[1]]

    return _PLACEHOLDER.sub(value, text)


READY: dict[str, CommandLine] = msgspec.toml.decode(
    (files("kbgym.agents.external") / "commands.toml").read_bytes(), type=dict[str, CommandLine]
)


def is_command(name: str) -> bool:
    return name.startswith(PREFIX) or name in READY


def command_line(name: str) -> CommandLine:
    """Return the command line of an agent: a predefined one, or the text after `command:`."""
    text = name.removeprefix(PREFIX).strip()
    if text in READY:
        return READY[text]
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise BadInput(f"the command {text!r} cannot be split into arguments: {error}.") from None
    if not arguments:
        raise BadInput(f"command: needs a command line, or one of {', '.join(READY)}.")
    return CommandLine(tuple(arguments))


def bridge_line(url: str, token: str) -> str:
    """Return the stdio bridge as one command line, for agents that configure an MCP server as a single line."""
    return f"KBGYM_TOKEN={token} {shlex.quote(sys.executable)} -m kbgym play bridge {url}"


def surroundings(line: CommandLine, handed: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an agent's process: common variables, those it inherits, and those it is given."""
    let_through = {name.strip() for name in os.environ.get(PASSED_ON, "").split(",")}
    seen = _SEEN | set(line.variables) | let_through
    env = {name: value for name, value in os.environ.items() if name in seen or name.startswith("LC_")}
    if any(name.lower().endswith("_proxy") for name in env):  # the pass is played on this machine
        env["NO_PROXY"] = env["no_proxy"] = "127.0.0.1,localhost"
    return {**env, **line.handed, **handed}
