"""`kbgym completion`: what a shell needs to complete verbs, options and their values."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the lines that make SHELL complete kbgym's verbs, options and values.

    Source them from ~/.bashrc, or put them into a folder of zsh's $fpath or into ~/.config/fish/completions.

    \b
    Example:
      kbgym completion bash > kbgym-completion.bash
    """
    found = get_completion_class(shell)
    assert found is not None  # click knows these three
    click.echo(found(click.get_current_context().find_root().command, {}, "kbgym", "_KBGYM_COMPLETE").source())
