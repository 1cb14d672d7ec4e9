"""The console: results on standard output, everything else on standard error; and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str, style: str = "") -> None:
    """Print a progress message on standard error; markup is not interpreted."""
    err.print(Text(text, style=style))


def echo(text: str, style: str = "") -> None:
    """Print a line of the result on standard output; markup is not interpreted."""
    out.print(Text(text, style=style))


def without_option(command: Callable[..., None], name: str) -> Callable[..., None]:
    """A command without one of its options, for Typer: the option keeps its default."""
    signature = inspect.signature(command, eval_str=True)
    kept = [each for each in signature.parameters.values() if each.name != name]
    vars(command)["__signature__"] = signature.replace(parameters=kept)
    return command
