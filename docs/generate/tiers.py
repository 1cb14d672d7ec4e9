"""Each file of tests in docs/testing.md: when it fails, and which command runs it.

    python -m docs.generate.tiers

What a file is there for stands in its docstring, in a paragraph that begins with ``Fails
when``; its commands follow from its markers. Unit tests stand together: their folder says what
they test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.generate.parts import markdown, with_parts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/testing.md"
TESTS = ROOT / "tests/python"
PART = "files"
FOLDERS = ("histories", "render", "spark", "stack", "fault", "parity", "platform")
# By marker, the first command that runs such a test; without one, every change pays for it.
COMMANDS = {
    "nightly": "test-all",
    "long": "test-long",
    "all_models": "parity",
    "fetches": "test-platform",
}
_FAILS = "Fails when "


def files() -> list[Path]:
    """The files with tests that need more than Python, in the order of the folders."""
    return [
        file for name in FOLDERS for file in sorted((TESTS / name).glob("test_*.py"))
    ]


def fails_when(file: Path) -> str | None:
    """The fault that a file is there for, as its docstring says it; None where it does not."""
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(_FAILS):
            return " ".join(paragraph.split()).removeprefix(_FAILS).rstrip(".")
    return None


def commands(file: Path) -> list[str]:
    """The make targets that run tests of a file first, the most frequent one first."""
    tree = ast.parse(file.read_text())
    of_file = {
        marker
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for marker in _markers(node.value)
    }
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            own = {mark for each in node.decorator_list for mark in _markers(each)}
            found.add(_command(own | of_file))
    order = ["test", *COMMANDS.values()]
    return sorted(found, key=order.index)


def _markers(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "pytest.mark":
            yield part.attr


def _command(markers: set[str]) -> str:
    # Of a test that is both, `long` is what keeps it out.
    named = [COMMANDS[name] for name in COMMANDS if name in markers]
    return named[-1] if named else "test"


def table() -> list[str]:
    """The lines of the table."""
    rows = [
        [
            f"`{file.relative_to(TESTS)}`",
            ", ".join(f"`make {name}`" for name in commands(file)),
            fails_when(file) or "",
        ]
        for file in files()
    ]
    return markdown(["file", "runs in", "fails when"], rows, numbers=False)


def main() -> None:
    """Rewrite the table."""
    PAGE.write_text(with_parts(PAGE.read_text(), {PART: table()}))


if __name__ == "__main__":
    main()
