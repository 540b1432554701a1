"""Messages of the library with the options of the running command instead of keyword arguments.

A parameter of the library and the click parameter that sets it have the same Python name, so the
option is looked up among the parameters of the command; there is no table of names.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import click

from kernelmill.errors import Message, Rendered

__all__ = [
    "find_parameter",
    "name_parameter",
    "render_message",
    "render_note",
    "translate_note",
]


def render_message(message: Message, command: click.Command | None) -> Rendered:
    """Return the problem and the remedy as text, with the options of `command`.

    A parameter that the command does not have is named as that of `fit`, "fit --loss log_loss". If
    that has none either, its value follows a colon: "use a larger degree (degree: 3)".

    Examples
    --------
    >>> from kernelmill.errors import Message, Remedy
    >>> drop = click.Option(["--drop"], multiple=True)
    >>> tune = click.Option(["--tune/--no-tune"])
    >>> command = click.Command("fit", params=[drop, tune])
    >>> message = Message("2 columns are constant", Remedy("leave them out", drop=["a", "b c"]))
    >>> render_message(message, command).remedy
    "leave them out (--drop a --drop 'b c')"
    >>> message = Message("must be True", Remedy("skip it", tune=False), parameter="tune")
    >>> render_message(message, command)
    Rendered(problem='--tune must be True', remedy='skip it (--no-tune)')
    """
    return message.render(
        lambda name: name_parameter(name, command),
        lambda name, value: _render_setting(name, value, command),
    )


def render_note(message: Message | str, command: click.Command | None) -> str:
    """Return a note as one line.

    Examples
    --------
    >>> from kernelmill.errors import Message, Remedy
    >>> target = click.Option(["--target"])
    >>> message = Message("no header", Remedy("name the target by its index", target=...))
    >>> render_note(message, click.Command("fit", params=[target]))
    'no header; name the target by its index (--target).'
    """
    if isinstance(message, str):
        return message
    problem, remedy = render_message(message, command)
    return f"{problem}; {remedy}." if remedy else f"{problem}."


_SETTINGS = re.compile(r"\((\w+=[^()]*)\)")


def translate_note(note: str, command: click.Command) -> str:
    """Return a note that a model file stores, with the options of `command` for its arguments.

    Examples
    --------
    >>> command = click.Command("fit", params=[click.Option(["--drop"], multiple=True)])
    >>> translate_note("Column 'id' counts up; leave it out (drop=['id']).", command)
    "Column 'id' counts up; leave it out (--drop id)."
    """

    def translate(found: re.Match[str]) -> str:
        try:
            call = ast.parse(f"f({found[1]})", mode="eval").body
            assert isinstance(call, ast.Call)
            given = {each.arg or "": ast.literal_eval(each.value) for each in call.keywords}
        except (SyntaxError, ValueError):
            return found[0]
        if any(find_parameter(name, command) is None for name in given):
            return found[0]
        options = (_render_setting(name, value, command) for name, value in given.items())
        return f"({', '.join(options)})"

    return _SETTINGS.sub(translate, note)


def find_parameter(name: str, command: click.Command | None) -> click.Parameter | None:
    """Return the parameter of the command that has this Python name, if there is one."""
    parameters: list[click.Parameter] = [] if command is None else command.params
    return next((each for each in parameters if each.name == name), None)


def name_parameter(name: str, command: click.Command | None) -> str:
    """Return the long form of an option, the metavar of an argument, or else the name itself."""
    parameter = find_parameter(name, command)
    if parameter is None:
        return name
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name.removesuffix("...")
    return max(parameter.opts, key=len)


def _render_setting(name: str, value: Any, command: click.Command | None) -> str:
    if find_parameter(name, command) is None and command is not None and command.name != "fit":
        # Of a model that has to be fitted again. A string: commands import this module.
        fit: click.Command = import_module("kernelmill.cli.commands.fit").command
        if find_parameter(name, fit) is not None:
            return f"fit {_render_option(name, value, fit)}"
    return _render_option(name, value, command)


def _render_option(name: str, value: Any, command: click.Command | None) -> str:
    parameter = find_parameter(name, command)
    shown = name_parameter(name, command)
    if value is ...:
        return shown
    if parameter is None:
        return f"{shown}: {', '.join(map(str, _list_values(value)))}"
    if isinstance(parameter, click.Option) and parameter.is_flag and value:
        return shown
    if value is None or value is False or value == []:
        return parameter.secondary_opts[0] if parameter.secondary_opts else f"without {shown}"
    # Types whose values are hard to type in a shell have a `spell` method.
    spell = getattr(parameter.type, "spell", str)
    if isinstance(value, list | tuple) and not parameter.multiple and parameter.nargs == 1:
        value = ",".join(map(spell, value))
    values = [shlex.quote(spell(each)) for each in _list_values(value)]
    if isinstance(parameter, click.Argument):
        return " ".join(values)
    return " ".join(f"{shown} {each}" for each in values)


def _list_values(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [f"{name}={each}" for name, each in value.items()]
    return value if isinstance(value, list | tuple) else [value]
