"""The mechanisms that exactness and increments rest on, and the text that takes each out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("mechanisms.yml")


@dataclass(frozen=True)
class Mechanism:
    """One entry of `mechanisms.yml`.

    Attributes:
        name: A short word for it.
        holds: What holds while it is there, as a sentence.
        doc: The page and heading that say so.
        file: What it is taken out of.
        old: A text of that file, found there once.
        new: What stands there without the mechanism.
        test_file: Where the test is that fails then.
        test: Its name.
    """

    name: str
    holds: str
    doc: str
    file: str
    old: str
    new: str
    test_file: str
    test: str

    @property
    def node_id(self) -> str:
        """What pytest calls the test."""
        return f"{self.test_file}::{self.test}"


def mechanisms() -> list[Mechanism]:
    """All of the file, in its order."""
    return [Mechanism(**said) for said in yaml.safe_load(FILE.read_text())]


def places(text: str, old: str) -> list[tuple[int, int, str]]:
    """Where a text is found in a file's: begin, end, and how far its lines are indented.

    Args:
        text: The file's.
        old: A part of a line, or whole lines that are indented alike in the file.
    """
    if "\n" not in old:
        return [(at.start(), at.end(), "") for at in re.finditer(re.escape(old), text)]
    first, *others = old.splitlines()
    pattern = rf"^(?P<indent> *){re.escape(first)}"
    for line in others:
        pattern += rf"\n(?P=indent){re.escape(line)}" if line else r"\n"
    found = re.finditer(f"{pattern}$", text, re.MULTILINE)
    return [(at.start(), at.end(), at["indent"]) for at in found]


def without(mechanism: Mechanism, text: str) -> str:
    """A file's text with the mechanism taken out.

    Raises:
        ValueError: The old text is not there exactly once, or what comes of it is no Python.
    """
    found = places(text, mechanism.old)
    if len(found) != 1:
        raise ValueError(
            f"{mechanism.name}: {mechanism.file} has its `old` {len(found)} times"
        )
    ((begin, end, indent),) = found
    new = "\n".join(
        f"{indent}{line}" if line else "" for line in mechanism.new.split("\n")
    )
    changed = text[:begin] + new + text[end:]
    if changed == text:
        raise ValueError(f"{mechanism.name}: `new` is its `old`")
    if mechanism.file.endswith(".py"):
        try:
            ast.parse(changed)
        except SyntaxError as error:
            raise ValueError(f"{mechanism.name}: {error}") from error
    return changed


@contextmanager
def taken_out(mechanism: Mechanism, project: Path) -> Iterator[None]:
    """A copy of the checkout is without the mechanism for a while."""
    file = project / mechanism.file
    text = file.read_text()
    file.write_text(without(mechanism, text))
    try:
        yield
    finally:
        file.write_text(text)
