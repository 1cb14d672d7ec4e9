"""What `mutations.yml` has, and how a text of a file is exchanged for another."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("mutations.yml")


@dataclass(frozen=True)
class Mechanism:
    """One of the mechanisms of `mutations.yml`; its comments say what the keys are."""

    why: str
    doc: str
    file: str
    old: str
    new: str
    test: str

    @property
    def node_id(self) -> str:
        """What pytest calls the test."""
        return f"tests/python/{self.test}"


def entries(section: str) -> Any:
    """What the file has in one of its sections, in its order."""
    return yaml.safe_load(FILE.read_text())[section]


def mechanisms() -> list[Mechanism]:
    """All of them."""
    return [Mechanism(**said) for said in entries("mechanisms")]


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
        raise ValueError(f"{mechanism.why}: {mechanism.file} has its `old` {len(found)} times")
    ((begin, end, indent),) = found
    new = "\n".join(f"{indent}{line}" if line else "" for line in mechanism.new.split("\n"))
    changed = text[:begin] + new + text[end:]
    if changed == text:
        raise ValueError(f"{mechanism.why}: `new` is its `old`")
    if mechanism.file.endswith(".py"):
        try:
            ast.parse(changed)
        except SyntaxError as error:
            raise ValueError(f"{mechanism.why}: {error}") from error
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


def plant_all(project: Path, section: str) -> None:
    """Make every edit of a section, in its order, in a copy of the project.

    Raises:
        ValueError: A file has not the text that stands there in its place.
    """
    for one in entries(section):
        file = project / one["file"]
        text, old = (file.read_text(), one["old"]) if "old" in one else ("", "")
        if old not in text:
            raise ValueError(f"{one['file']} does not have {old!r}")
        file.write_text(text.replace(old, one["new"], 1))
