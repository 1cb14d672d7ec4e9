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
Each model is written once, builds on Spark and on Redshift, and has the same result on both, cell
by cell. Models do not use SQL that the engines interpret differently; engine-specific SQL is in
`macros/cross_db`. `python -m tests.python.parity.page` generates this page by running both
engines; a test compares it with a run. "Emulator" is the sandbox's Redshift emulator. It is not
Redshift: [redshift.md](redshift.md) lists what only a real one can show.

## Who catches what
| layer | asks | command |
|---|---|---|
"""

_LAYERS = [
    (
        RENDER,
        "whether the SQL is valid on Redshift, and each function is listed with its page",
        "`make render`, with no server",
    ),
    (
        STANDIN,
        "whether the real adapter's statements run",
        "`sandbox up redshift`, `dbt build --target redshift-standin`",
    ),
    (
        CELLS,
        "whether both engines have the same columns, types, rows and nulls, also after increments",
        "`make parity`",
    ),
]

_ROUNDS = """
`make parity` fills one bronze in three rounds: ordinary days; late, repeated, moved and deleted
rows; invalid times and numbers, and records that ingest lost or doubled. After each round it
builds both engines from the same files. The second and third builds are incremental; the third
covers only the models that the new rows affect. It compares every model (except the three about
dbt's own runs), the seed, the values of every analysis, and the state of the increments.

## Types
The type of each contract type on both engines. Iceberg strings have no length. The length of a
`varchar` applies only on Redshift, counts bytes, and must equal the contract's.

| contract | Spark | Redshift |
|---|---|---|
"""

_CONSTRUCTS = """
## Constructs
All of these constructs build on Spark. The values are from one row of the run. The replacement in
our models was built in the same run, and has the same result on both engines.

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
