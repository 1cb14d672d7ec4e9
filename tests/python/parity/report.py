"""What parity prints: a table of models, one of constructs, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.python.parity.mutation import Mutation, mutants, slipped
from tests.python.parity.trial import ROUNDS, Trial

PLAIN_WIDTH = 200
_SHOWN = 5
_LONGEST = 66


def console() -> Console:
    """Standard output; as wide as its lines where it is no terminal."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def print_trial(out: Console, trial: Trial) -> None:
    """Each model with its rows after each round, then the first cells that differ."""
    rows = []
    for name in trial.compared["first"]:
        rounds = [trial.compared[round_name][name] for round_name in ROUNDS]
        wrong = [
            f"{len(found.differences)} after {round_name!r}"
            for round_name, found in zip(ROUNDS, rounds, strict=True)
            if found.differences
        ]
        rows.append(
            (
                name,
                str(len(rounds[0].spark.columns)),
                *(str(len(found.spark.rows)) for found in rounds),
                f"differs: {', '.join(wrong)}" if wrong else "equal",
            )
        )
    headers = ["model", "columns", *(f"rows, {name}" for name in ROUNDS), "both engines"]
    _print(out, headers, rows)
    for round_name, relations in trial.compared.items():
        for name, found in relations.items():
            for difference in found.differences[:_SHOWN]:
                out.print(Text(f"{round_name}: {name}: {difference}", style="red"))
    for failure in trial.failures:
        out.print(Text(f"dbt: {failure}", style="red"))


def print_mutation(out: Console, mutation: Mutation) -> None:
    """Each construct with the layer that caught it, then what none did."""
    rows = []
    for mutant in mutants():
        caught = mutation.mutants[mutant.file]
        layer = caught.layer or "SLIPS THROUGH"
        rows.append((mutant.why, layer, caught.spark or "fails", caught.standin))
    _print(out, ["construct", "caught", "on Spark", "on the emulator"], rows)
    for sentence in slipped(mutation):
        out.print(Text(sentence, style="red"))


def _print(out: Console, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(box=box.SIMPLE_HEAD if out.is_terminal else None, pad_edge=False)
    for header in headers:
        is_number = header == "columns" or header.startswith("rows")
        table.add_column(header, justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_short(cell)) for cell in row))
    out.print(table)
    out.print()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
