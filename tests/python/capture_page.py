"""The page that captures a database in ten steps: its blocks, and somebody who does them."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass

from sandbox.services import postgres
from sandbox.settings import PROJECT
from tests.python.walks import Newcomer

PAGE = PROJECT / "docs" / "capture-a-database.md"
_STEP = re.compile(r"^## (\d+)\. (.+)$", re.MULTILINE)
_BLOCK = re.compile(
    r"(?:^(?:In `(?P<database>\w+)`, as `(?P<user>\w+)`|`(?P<path>[^`\n]+)`):\n\n)?"
    r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        kind: ``sql`` for a database, ``json`` for a file, ``sh`` to type, ``text`` printed.
        text: What it holds.
        place: The database, or the file.
        user: Of the database.
    """

    kind: str
    text: str
    place: str = ""
    user: str = ""


def steps(text: str) -> list[tuple[int, str]]:
    """Number and title of each step."""
    return [(int(number), title) for number, title in _STEP.findall(text)]


def blocks(text: str) -> list[Block]:
    """The blocks in their order; one that does not say what to do with it fails."""
    found = []
    for block in _BLOCK.finditer(text):
        kind, place = block["kind"], block["database"] or block["path"] or ""
        assert kind in ("sql", "json", "sh", "text"), block[0]
        assert bool(place) == (kind in ("sql", "json")), block[0]
        assert bool(block["database"]) == (kind == "sql"), block[0]
        found.append(Block(kind, block["text"], place, block["user"] or ""))
    assert text.count("```") == 2 * len(found)
    return found


def do(block: Block, newcomer: Newcomer) -> str:
    """Do what a block says; what that printed."""
    if block.kind == "sql":
        return _queried(block, newcomer)
    if block.kind == "json":
        (newcomer.checkout / block.place).write_text(block.text)
    if block.kind == "sh":
        return "".join(map(newcomer.type, block.text.splitlines()))
    return ""


def _queried(block: Block, newcomer: Newcomer) -> str:
    """Rows of the last statement, as a client shows them without its frame."""
    connection = postgres.connect(newcomer.home, block.place, block.user)
    with closing(connection):
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(block.text)
        if cursor.description is None:
            return ""
        head = [column[0] for column in cursor.description]
        rows = [[str(value) for value in row] for row in cursor.fetchall()]
    widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)]
    lines = (
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in [head, *rows]
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)
