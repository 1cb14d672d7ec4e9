"""The walks of CONTRIBUTING.md can be followed: every block says what to do with it."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from sandbox.settings import PROJECT, Home
from tests.python.walks import WALKS, Block, Newcomer, blocks_of

TEXT = (PROJECT / "CONTRIBUTING.md").read_text()

WALK = """\
## Add a stream
Write this:

`notes/one.txt`:

```
first
```

`notes/one.txt`, at its end:

```text
second
```

And type:

```sh
cat notes/one.txt > copied
```

## Another
"""


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    (tmp_path / "checkout/notes").mkdir(parents=True)
    return Newcomer(tmp_path / "checkout", Home(tmp_path / "home"))


def follow(newcomer: Newcomer, text: str) -> list[str]:
    (newcomer.checkout / "CONTRIBUTING.md").write_text(text)
    return newcomer.follow("Add a stream")


@pytest.mark.parametrize("walk", WALKS)
def test_every_block_of_a_walk_is_a_file_or_typed(walk: str) -> None:
    blocks = blocks_of(walk, TEXT)
    assert {block.does for block in blocks} >= {"write", "type"}


@pytest.mark.parametrize("walk", WALKS)
def test_the_files_of_a_walk_are_new_or_there_and_can_be_read(walk: str) -> None:
    written = [block for block in blocks_of(walk, TEXT) if block.does != "type"]
    read: dict[str, Callable[[str], object]] = {
        ".yml": yaml.safe_load,
        ".avsc": json.loads,
        ".py": ast.parse,
        ".sql": str.strip,
    }
    for block in written:
        file = PROJECT / block.path
        assert file.parent.is_dir(), block.path
        assert file.exists() == (block.does == "append"), block.path
        before = file.read_text() if file.exists() else ""
        assert read[file.suffix](before + block.text), block.path


def test_a_walk_is_its_own_section_in_its_order() -> None:
    assert blocks_of("Add a stream", WALK) == [
        Block("write", "notes/one.txt", "first\n"),
        Block("append", "notes/one.txt", "second\n"),
        Block("type", "", "cat notes/one.txt > copied\n"),
    ]


def test_following_a_walk_writes_its_files_and_types_its_commands(newcomer: Newcomer) -> None:
    assert follow(newcomer, WALK) == ["notes/one.txt", "notes/one.txt"]
    assert (newcomer.checkout / "copied").read_text() == "first\nsecond\n"


@pytest.mark.parametrize(
    ("was", "becomes", "reason"),
    [
        ("cat notes/one.txt", "cat notes/two.txt", r"\$ cat notes/two\.txt.*exited with 1"),
        ("```sh", "```", "is neither"),
        ("`notes/one.txt`:", "`letters/one.txt`:", "its folder is not there"),
        ("`notes/one.txt`:", "`notes/two.txt`:", "notes/one.txt"),
    ],
)
def test_a_step_that_does_not_work_as_written_fails(
    newcomer: Newcomer, was: str, becomes: str, reason: str
) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)) as failed:
        follow(newcomer, WALK.replace(was, becomes, 1))
    failed.match(f"(?s){reason}")
