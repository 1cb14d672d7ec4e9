"""Console output: results on standard output, everything else on standard error."""

from __future__ import annotations

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
