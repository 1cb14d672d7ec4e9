"""Pages that show commands and what they printed: their blocks, and somebody who does them."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass

from sandbox.services import postgres
from sandbox.settings import PROJECT
from tests.python.walks import Newcomer

CAPTURE = PROJECT / "docs" / "capture-a-database.md"
FIRST_HOUR = PROJECT / "docs" / "first-hour.md"
# In a copy there is no make: it has no virtual environment of its own.
MADE = {
    "make new-captured TABLE=": "spark-ingest new-captured ",
    "make new-stream STREAM=shop.orders DOMAIN=": ("spark-ingest new-stream shop.orders --domain "),
}
_STEP = re.compile(r"^## (\d+)\. (.+)$", re.MULTILINE)
_BLOCK = re.compile(
    r"(?:^(?:In `(?P<database>\w+)`, as `(?P<user>\w+)`|`(?P<path>[^`\n]+)`)"
    r"(?P<end>, at its end)?:\n\n)?"
    r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# Of what a command printed, all that shows times, ports, processes and folders.
_MASKED = (
    (re.compile(r"\x1b\[\d+m"), ""),
    (re.compile(r"^\d\d:\d\d:\d\d +", re.MULTILINE), ""),
    (re.compile(r"127\.0\.0\.1:\d+ +pid \d+ +log \S+"), "127.0.0.1"),
    (re.compile(r"in \d+\.\d+ ?s"), "in some time"),
    (re.compile(r'("(?:rows_per_second|mb_per_second|seconds)": )[\d.]+'), r"\1 0"),
)
_NODE = re.compile(r"^\d+ of \d+ (.+?)(?: \.+)? +\[(\w+)")
_DONE = "Done. "


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        kind: ``sh`` to type, ``text`` printed, ``sql`` with a user for a database; of what
            else has a place: a file.
        text: What it holds.
        place: The database, or the file.
        user: Of the database.
        at_end: The file is there, and gets it at its end.
    """

    kind: str
    text: str
    place: str = ""
    user: str = ""
    at_end: bool = False

    @property
    def is_query(self) -> bool:
        return self.kind == "sql" and bool(self.user)


def steps(text: str) -> list[tuple[int, str]]:
    """Number and title of each step."""
    return [(int(number), title) for number, title in _STEP.findall(text)]


def blocks(text: str) -> list[Block]:
    """The blocks in their order; one that does not say what to do with it fails."""
    found = []
    for block in _BLOCK.finditer(text):
        kind, place = block["kind"], block["database"] or block["path"] or ""
        assert kind, block[0]
        assert bool(place) == (kind not in ("sh", "text")), block[0]
        end = bool(block["end"])
        found.append(Block(kind, block["text"], place, block["user"] or "", end))
    assert text.count("```") == 2 * len(found)
    return found


def do(block: Block, newcomer: Newcomer) -> str:
    """Do what a block says; what that printed."""
    if block.is_query:
        return _queried(block, newcomer)
    if block.place:
        file = newcomer.checkout / block.place
        assert file.exists() or not block.at_end, block.place
        before = file.read_text() if block.at_end else ""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(before + block.text)
    if block.kind == "sh":
        text = block.text
        for command, instead in MADE.items():
            text = text.replace(command, instead)
        return "".join(map(newcomer.type, text.splitlines()))
    return ""


def lasting(printed: str) -> list[str]:
    """What a command prints each time: without times, ports, processes and dbt's own order.

    Of dbt the lines of the nodes that were built or tested, and how many there were.
    """
    for pattern, instead in _MASKED:
        printed = pattern.sub(instead, printed)
    lines = printed.splitlines()
    ends = [at for at, line in enumerate(lines) if line.startswith(_DONE)]
    if not ends:
        return lines
    nodes = [_NODE.match(line) for line in lines[: ends[0]]]
    built = sorted(" ".join(m.groups()) for m in nodes if m and _is_result(m[1]))
    return [*built, *lines[ends[0] :]]


def _is_result(reported: str) -> bool:
    return reported.startswith(("OK ", "PASS ", "WARN ", "FAIL ")) and " hook: " not in reported


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
