"""Walks through the project, followed from the text that shows them: CONTRIBUTING.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from sandbox.services import stack as services
from sandbox.settings import Home
from tests.python.conftest import PROGRAM_SECONDS, make_home, program_environment
from tests.python.project_copy import copy_checkout

WALKS = ("Add a stream", "Add a mart")
BLOCK = re.compile(
    r"(?:^`(?P<path>[^`\n]+)`(?P<end>, at its end)?:\n\n)?"
    r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Block:
    """A fenced block: a file to write, the end of one, or commands to type."""

    does: Literal["write", "append", "type"]
    path: str
    text: str

    @property
    def commands(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip()]


@contextmanager
def newcomer_in(folder: Path) -> Iterator[Newcomer]:
    """Somebody with a copy and a sandbox in a folder; its services end with them."""
    home = make_home(folder / "home")
    try:
        yield Newcomer(copy_checkout(folder / "checkout"), home)
    finally:
        services.down(home)


def blocks_of(walk: str, text: str) -> list[Block]:
    """The blocks of a walk in their order; one that says neither file nor `sh` fails."""
    (section,) = re.findall(
        rf"^## {re.escape(walk)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    found = []
    for block in BLOCK.finditer(section):
        path, written = block["path"] or "", block["text"]
        assert bool(path) != (block["kind"] == "sh"), f"is neither:\n{block[0]}"
        if not path:
            found.append(Block("type", "", written))
        else:
            found.append(Block("append" if block["end"] else "write", path, written))
    assert section.count("```") == 2 * len(found)
    return found


@dataclass(frozen=True)
class Newcomer:
    """A copy of the checkout, a sandbox that never ran, and what was typed and written."""

    checkout: Path
    home: Home

    def follow(self, walk: str) -> list[str]:
        """Do what a walk says; the files that it wrote or changed."""
        written = []
        text = (self.checkout / "CONTRIBUTING.md").read_text()
        for block in blocks_of(walk, text):
            if block.does == "type":
                for command in block.commands:
                    self.type(command)
                continue
            file = self.checkout / block.path
            assert file.parent.is_dir(), f"{block.path}: its folder is not there"
            assert file.exists() == (block.does == "append"), block.path
            before = file.read_text() if file.exists() else ""
            file.write_text(before + block.text)
            written.append(block.path)
        return written

    def type(self, command: str) -> str:
        """Run a line in a shell, as in an activated environment; what it printed."""
        environment = program_environment(self.home)
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.checkout,
            # Packages of the copy come before those of the checkout.
            env={
                **environment,
                "PATH": f"{BIN}{os.pathsep}{environment['PATH']}",
                "PYTHONPATH": str(self.checkout),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            pytest.fail(f"$ {command}\nexited with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def number(self, query: str) -> int:
        """The one number that a query gives."""
        printed = self.type(f'sandbox sql --format csv "{query}"')
        return int(printed.splitlines()[1])
