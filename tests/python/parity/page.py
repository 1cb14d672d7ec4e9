"""docs/portability.md, made of the mutants and of what a run found."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from sandbox.settings import PROJECT
from tests.python.conftest import make_home
from tests.python.parity.mutation import CELLS, RENDER, STANDIN, Mutation, mutants, run_mutants
from tests.python.parity.relations import TYPES

FILE = PROJECT / "docs/portability.md"

_TOP = """# Portability
One text of each model builds on Spark and on Redshift, and both hold the same in every cell.
What the two would understand differently stays out of the models; what must differ is in
`macros/cross_db`. This page is made by a run of both engines
(`python -m tests.python.parity.page` rewrites it, and a test holds it to the run).
"Emulator" is the sandbox's Redshift emulator; it is not Redshift, and
[redshift.md](redshift.md) says what only a real one can show.

## Who catches what
| layer | asks | command |
|---|---|---|
"""

_LAYERS = [
    (
        RENDER,
        "whether the text is SQL of Redshift, and each function on the list with its page",
        "`make render`, with no server",
    ),
    (
        STANDIN,
        "whether the statements of the real adapter run",
        "`sandbox up redshift`, `dbt build --target redshift-standin`",
    ),
    (
        CELLS,
        "whether both hold the same columns, types, rows and nulls, after increments too",
        "`make parity`",
    ),
]

_ROUNDS = """
`make parity` fills one bronze in three rounds: ordinary days; rows that are late, sent again,
moved and gone; times, numbers and an ingest that are wrong. After each it builds both engines
from the same files, the second and third time by increments, the third time what its rows reach.
It compares every model, the seed, the values of every analysis, and what increments know of
themselves.

## Types
A contract's type, and what it is on each engine. Iceberg's strings have no length: that of a
`varchar` is Redshift's alone, in bytes, and must be the contract's.

| contract | Spark | Redshift |
|---|---|---|
"""

_CONSTRUCTS = """
## Constructs
Each of these builds on Spark. The values are of one row of the run; what our models write
instead was built beside it, and is the same on both.

| construct | as in | Spark | Redshift | the emulator | our models write | caught |
|---|---|---|---|---|---|---|
"""


def text(mutation: Mutation) -> str:
    """The page.

    Args:
        mutation: What became of all mutants.
    """
    lines = [_TOP, *map(_row, _LAYERS), _ROUNDS]
    lines += [_row(map(_code, names)) for names in TYPES]
    lines.append(_CONSTRUCTS)
    for mutant in mutants():
        caught = mutation.mutants[mutant.file]
        refuses = caught.layer in {RENDER, STANDIN}
        cells = [
            mutant.why,
            _code(_spoken(mutant.new, mutant.by, mutant.where, mutant.column)),
            mutant.spark or _value(caught.spark or "does not build"),
            f"{mutant.redshift} [{mutant.page.title}]({mutant.page.url})",
            "refuses it" if refuses else _value(caught.standin),
            _code(_spoken(mutant.old, mutant.old_by or mutant.by)),
            caught.layer or "nowhere",
        ]
        lines.append(_row(cells))
    return "".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _spoken(value: str, by: str | None, where: str = "", column: str = "found") -> str:
    """An expression with what the rest of its select says."""
    name = "" if column == "found" else f" as {column}"
    group = f" … group by {by}" if by else ""
    return f"{value}{name}{f' … where {where}' if where else ''}{group}"


def _value(example: str) -> str:
    """``0.5 (double)``: the value as code."""
    value, space, kind = example.rpartition(" (")
    return f"{_code(value)}{space}{kind}" if value else _code(example)


def _code(words: str) -> str:
    escaped = words.replace("|", r"\|")
    return f"`{escaped}`"


def main() -> None:
    """Build the mutants and rewrite the page."""
    with tempfile.TemporaryDirectory(prefix="millrace-parity-") as folder:
        FILE.write_text(text(run_mutants(make_home(Path(folder) / "sand box"))))


if __name__ == "__main__":
    main()
