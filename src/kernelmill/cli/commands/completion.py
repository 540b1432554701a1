"""`kernelmill completion`: print a shell script that completes commands and options."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import get_completion_class

from kernelmill.cli.program.options import Command, general_options
from kernelmill.cli.program.terminal import get_terminal

__all__ = ["command"]

# Where each shell looks for completions, if possible without changes to its start-up files.
PLACES = {
    "bash": "~/.local/share/bash-completion/completions/kernelmill",
    "zsh": "~/.zfunc/_kernelmill",
    "fish": "~/.config/fish/completions/kernelmill.fish",
}
HINTS = {
    "zsh": "Add `fpath+=~/.zfunc; autoload -Uz compinit; compinit` to ~/.zshrc.",
}


@click.command(
    "completion",
    cls=Command,
    short_help="Print a completion script for a shell.",
    examples=[
        ("kernelmill completion bash", "print the script, and where to put it"),
        (f"kernelmill completion fish > {PLACES['fish']}", "install it"),
    ],
)
@click.argument("shell", type=click.Choice(list(PLACES)))
@general_options
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    The script is printed on stdout. A line on stderr says where to put it. Completion works in
    new shells.
    """
    terminal = get_terminal(context)
    found = get_completion_class(shell)
    assert found is not None, "click completes in all of PLACES"
    root = context.find_root()
    settings: dict[str, Any] = {}
    script = found(root.command, settings, "kernelmill", "_KERNELMILL_COMPLETE").source()
    terminal.give({"shell": shell, "place": PLACES[shell], "script": script})
    if not terminal.json:
        click.echo(script)
    place = f"put this into {PLACES[shell]} (create its folder first) and open a new shell"
    terminal.note(f"{place}. {HINTS[shell]}" if shell in HINTS else f"{place}.")
