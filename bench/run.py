"""What each benchmark's command does: measure, keep, show, put into the docs, judge."""

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
    Path, typer.Option(help="For all that it makes, which is removed when all went well.")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Small and once: shows that it works, no more.")
]
ResultsFile = Annotated[
    Path | None, typer.Option(help="The file of the results; else that in bench/results.")
]
WriteDocs = Annotated[
    bool, typer.Option("--write-docs", help="Put the results into the docs, too.")
]
OnlyDocs = Annotated[
    bool, typer.Option("--only-docs", help="Measure nothing; write docs from the file.")
]
FOLDER = PROJECT / "target" / "bench"


class OverLimit(MillraceError):
    """What was measured is not within its limits."""


class Benchmark:
    """A command that measures; options for results and docs come to those of its own.

    Exit codes: 0 measured and within the limits, 1 not, 2 wrong use.

    Args:
        name: Its module, without ``bench.``.
        command: What people type.
        beyond: What of the results is not within its limits, each in a few words.
        trial: By its options, the file in ``folder`` of a trial that the limits do not bind.
        adds: Whether what was measured earlier stays where it was not measured again.
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
        """Results from their file.

        Raises:
            ConfigurationError: It is missing, or not one.
        """
        return read_kept(file or self.file, self._command)

    def run(self, measure: Callable[..., Iterator[Results]]) -> None:
        """Run the command; an error that a person can mend is one line.

        Args:
            measure: Its options, and what it gives: results so far, all of them at last.
        """
        # By an exception, so that all that it started ends too.
        signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(143))
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command()(self.with_options(measure))
        try:
            app()
        except MillraceError as error:
            err.print(f"bench.{self.name}: {error}", markup=False, highlight=False)
            sys.exit(error.exit_code)

    def with_options(self, measure: Callable[..., Iterator[Results]]) -> Callable[..., None]:
        """The command as a function: the options of all benchmarks behind its own."""

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
            say(f"all numbers: {file}")
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
    """The whole numbers between commas, the smallest first."""
    try:
        return sorted({int(size) for size in text.split(",")})
    except ValueError as error:
        raise ConfigurationError(f"--sizes {text}: write whole numbers, like {like}") from error


def beyond(
    table: Table, heading: str, most: float, only: Callable[[list[Cell]], bool] = bool
) -> list[str]:
    """The numbers of a column that are more than a limit, named by the first cell of their row.

    Args:
        table: All of them.
        heading: Of the column.
        most: The limit.
        only: Which rows it binds; all by default.
    """
    rows = zip(table.rows, map(number_of, table.column(heading)), strict=True)
    return [
        f"{heading} of {row[0]} is {number:,.2f}, more than {most:g}"
        for row, number in rows
        if only(row) and number > most
    ]
