"""The command of a benchmark: measure, store, print, update the docs, check limits."""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.report.page import table_lines, write_page
from bench.report.results import Cell, Results, Table, number_of, read_kept, write_kept
from sandbox.settings import PROJECT
from sandbox.ui import echo, err, say
from spark_ingest.errors import ConfigurationError, MillraceError

Folder = Annotated[
    Path, typer.Option(help="Working directory; its content is removed after success.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A small single run, as a smoke test only.")]
ResultsFile = Annotated[
    Path | None, typer.Option(help="Results file. Default: the one in bench/results.")
]
WriteDocs = Annotated[
    bool, typer.Option("--write-docs", help="Also update the docs with the results.")
]
OnlyDocs = Annotated[
    bool, typer.Option("--only-docs", help="Do not measure; update the docs from the results file.")
]
FOLDER = PROJECT / "target" / "bench"


class OverLimit(MillraceError):
    """A result exceeds its limit."""


class Benchmark:
    """The command of a benchmark, with options for results and docs.

    Exit codes: 0 within the limits, 1 failure or over a limit, 2 usage error.

    Args:
        name: The module, without ``bench.``.
        command: The command that users run.
        beyond: Describes results that exceed their limits.
        trial: For the options of a trial run without limits, its results file in ``folder``.
        adds: Whether earlier results are kept for parts that were not measured again.
    """

    def __init__(
        self,
        name: str,
        command: str = "",
        *,
        beyond: Callable[[Results], list[str]] = lambda _: [],
        trial: Callable[[Mapping[str, Any]], str | None] = lambda _: None,
        adds: bool = False,
    ) -> None:
        self.name = name
        self.file = PROJECT / "bench/results" / f"{name}.json"
        self.beyond = beyond
        self._command = command or f"python -m bench.{name}"
        self._trial = trial
        self._adds = adds

    def read(self, file: Path | None = None) -> Results:
        """Read results from a file.

        Raises:
            ConfigurationError: The file is missing or invalid.
        """
        return read_kept(file or self.file, self._command)

    def run(self, measure: Callable[..., Iterator[Results]]) -> None:
        """Run the command; expected errors are printed on one line.

        Args:
            measure: Function with the options, which yields partial and finally full results.
        """
        # Exit by an exception, so that child processes are stopped.
        signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(143))
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command()(self.with_options(measure))
        try:
            app()
        except MillraceError as error:
            err.print(f"bench.{self.name}: {error}", markup=False, highlight=False)
            sys.exit(error.exit_code)

    def with_options(self, measure: Callable[..., Iterator[Results]]) -> Callable[..., None]:
        """The command as a function with its own and the common options."""

        def command(
            *,
            results: ResultsFile = None,
            write_docs: WriteDocs = False,
            only_docs: OnlyDocs = False,
            **options: Any,
        ) -> None:
            trial = self._trial(options)
            file = results or (options["folder"] / trial if trial else self.file)
            if only_docs:
                write_page(self.read(file))
                return
            before = self.read(file) if self._adds and file.exists() else Results()
            for measured in measure(**options):
                write_kept(before.updated(measured), file)
            for table in measured.tables():
                for line in (*table_lines(table), ""):
                    echo(line)
            say(f"results: {file}")
            if write_docs:
                write_page(self.read(file))
            if not trial and (found := self.beyond(measured)):
                raise OverLimit("; ".join(found))

        own, shared = (
            inspect.signature(each, eval_str=True).parameters.values()
            for each in (measure, command)
        )
        parameters = [*own, *(each for each in shared if each.kind is each.KEYWORD_ONLY)]
        command.__dict__["__signature__"] = inspect.Signature(parameters)
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        command.__doc__ = measure.__doc__
        return command


def numbers(text: str, like: str) -> list[int]:
    """Parse comma-separated integers, sorted."""
    try:
        return sorted({int(size) for size in text.split(",")})
    except ValueError as error:
        raise ConfigurationError(f"--sizes {text}: write whole numbers, like {like}") from error


def beyond(
    table: Table, heading: str, most: float, only: Callable[[list[Cell]], bool] = bool
) -> list[str]:
    """The numbers of a column that exceed a limit, with the first cell of their row.

    Args:
        table: The table.
        heading: The heading of the column.
        most: The limit.
        only: The rows that have the limit; all by default.
    """
    rows = zip(table.rows, map(number_of, table.column(heading)), strict=True)
    return [
        f"{heading} of {row[0]} is {number:,.2f}, more than {most:g}"
        for row, number in rows
        if only(row) and number > most
    ]
