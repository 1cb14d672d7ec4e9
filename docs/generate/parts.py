"""Generated parts of the documents.

A generated part stands between ``<!-- generated: NAME -->`` and ``<!-- /generated -->``; all
else on a page is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

GENERATED = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- /generated -->)", re.DOTALL)


def with_parts(text: str, parts: Mapping[str, Sequence[str]]) -> str:
    """A page's text with some of its generated parts replaced, the others as they are.

    Args:
        text: The page.
        parts: The lines of a part, by its name.
    """
    return GENERATED.sub(
        lambda found: (
            found[1] + "\n".join(parts[found[2]]) + "\n" + found[4]
            if found[2] in parts
            else found[0]
        ),
        text,
    )


def markdown(head: list[str], rows: Iterable[list[str]], *, numbers: bool = True) -> list[str]:
    """Lines of a table; the first column to the left, the others right where they are numbers."""
    other = "---:|" if numbers else "---|"
    return [
        f"| {' | '.join(head)} |",
        f"|---|{other * (len(head) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
