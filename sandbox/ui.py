"""The two channels to the person: results on standard output, all else on standard error."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str, style: str = "") -> None:
    """One line of progress, on standard error; square brackets stay as they are."""
    err.print(Text(text, style=style))


def echo(text: str, style: str = "") -> None:
    """One line of the result, on standard output; square brackets stay as they are."""
    out.print(Text(text, style=style))
