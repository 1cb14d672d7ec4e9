"""`sandbox produce` for databases: initial rows and random changes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from sandbox import ui
from sandbox.databases import statements
from sandbox.databases.known import DATABASES, TICKIT
from sandbox.databases.run import Done, run
from sandbox.databases.server import check_captured, opened
from sandbox.databases.state import DatabaseState, Kind
from sandbox.databases.statements import Connection
from sandbox.databases.tables import Database
from sandbox.databases.transactions import transactions
from sandbox.events.produce import INTERRUPTED, AsJson, progress, records_per_second
from sandbox.services.connect import wait_until_passed
from sandbox.settings import load_home

Rows = Annotated[
    int | None,
    typer.Option(min=1, help="Number of rows for the first table, if the tables are empty."),
]
Changes = Annotated[
    int,
    typer.Option(
        min=0, help="Number of random changes to commit; rolled-back changes do not count."
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        metavar="R/s",
        help="Changes per second, spread evenly. Default: as fast as possible.",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Random seed: the same seed gives the same rows and changes.")
]
Truncates = Annotated[
    bool, typer.Option("--truncates", help="Include an occasional TRUNCATE of a table.")
]

_HELP = """\
{help}

Fills empty tables: --rows of {first} ({size:,}), the others in proportion. If
there are rows, it reports their number and writes none. With --changes random
transactions follow: inserts, updates, key changes, deletes and reinserts,
sometimes several of one row in a transaction; every twentieth transaction is
rolled back. The same seed gives the same changes of the same rows. Returns
when the connector has processed the last transaction.

    sandbox up cdc
    sandbox produce {command}
    sandbox produce {command} --changes 500
    sandbox produce {command} --changes 6000 --rate 200/s
{more}
Ctrl-C stops it after the current transaction. Exit codes: 0 success,
1 database error, 2 usage error or services down, 130 stopped by Ctrl-C."""
_MORE = """\
    sandbox produce {command} --changes 500 --truncates
"""


@dataclass(frozen=True)
class Options:
    """The options of a command."""

    rows: int | None
    changes: int
    rate: str | None
    seed: int
    truncates: bool
    as_json: bool


def _command(database: Database) -> Callable[..., None]:
    """The function of a database's command: its parameters are the options."""

    def command(
        rows: Rows = None,
        changes: Changes = 0,
        rate: Rate = None,
        seed: Seed = 1,
        truncates: Truncates = False,
        as_json: AsJson = False,
    ) -> None:
        produce_rows(database, Options(rows, changes, rate, seed, truncates, as_json))

    return command if database.truncates else ui.without_option(command, "truncates")


def _help(database: Database) -> str:
    known = {"command": database.command, "size": database.size, "first": database.tables[0].name}
    more = _MORE.format(**known) if database.truncates else ""
    return _HELP.format(help=database.help, more=more, **known)


def add_to(app: typer.Typer) -> None:
    """Add a command to `sandbox produce` for each database that has its own."""
    for database in DATABASES.values():
        if database in TICKIT:
            continue
        app.command(database.command, help=_help(database), rich_help_panel="Databases")(
            _command(database)
        )


def produce_rows(database: Database, options: Options) -> None:
    """Fill a database and change it, and report the result.

    Raises:
        ConfigurationError: Invalid options.
        ServiceUnavailable: The database is down, or no connector captures it.
        MillraceError: The database reports an error, or its connector has failed.
    """
    rate = records_per_second(options.rate)
    home = load_home()
    check_captured(home, database)
    with opened(home, database) as connection:
        before = statements.counts(database, connection)
        with progress(f"filling {database.name}", None) as on_progress:
            filled = fill_empty(
                database,
                connection,
                before,
                (options.seed, options.rows or database.size),
                on_progress,
            )
        done = _changed(database, connection, rate, options)
    waited = time.monotonic()
    # A restarted connector commits its position only after the next transaction.
    if filled or done.transactions:
        wait_until_passed(home, database.connector)
    waited = time.monotonic() - waited
    _report(database, before, filled, done, waited, options)
    if done.interrupted:
        raise typer.Exit(INTERRUPTED)


def fill_empty(
    database: Database,
    connection: Connection,
    before: Mapping[str, int],
    seed_and_size: tuple[int, int],
    on_progress: Callable[[int], None],
) -> Counter[str]:
    """Write the initial rows if all tables are empty.

    Args:
        before: Number of rows by table.
        on_progress: Called regularly with the number of written rows.

    Returns:
        Number of rows written by table; empty if there were rows.
    """
    if any(before.values()):
        return Counter()
    rows = database.rows(*seed_and_size)
    return statements.fill(database, connection, rows, on_progress)


def _changed(
    database: Database, connection: Connection, rate: float | None, options: Options
) -> Done:
    if not options.changes:
        return Done()
    state = DatabaseState(database, statements.stored(database, connection))
    operations = database.operations + (database.truncates if options.truncates else ())
    drawn = transactions(state, operations, options.seed, options.changes)
    with progress(f"changing {database.name}", options.changes) as on_progress:
        return run(database, connection, drawn, rate, on_progress)


def _report(
    database: Database,
    before: dict[str, int],
    filled: Counter[str],
    done: Done,
    waited: float,
    options: Options,
) -> None:
    if options.as_json:
        facts = {
            "database": database.name,
            "connector": database.connector,
            "rows_before": before,
            "rows_written": dict(filled),
            **changes_counted(done),
            "seed": options.seed,
            "seconds": round(done.seconds, 3),
            "seconds_to_connector": round(waited, 3),
            "interrupted": done.interrupted,
        }
        ui.echo(json.dumps(facts))
        return
    ui.echo(rows_summary(database, before, filled, options.seed))
    if options.changes:
        ui.echo(changes_summary(done, options.seed))
    if filled or done.transactions:
        ui.echo(f"the connector {database.connector} has passed them ({waited:.1f} s)")


def rows_summary(
    database: Database, before: Mapping[str, int], filled: Counter[str], seed: int
) -> str:
    """One line about the initial rows of a database."""
    if filled:
        return f"{database.name} got {_counted(filled)}, seed {seed}"
    return f"{database.name} had {_counted(before)}: none were written"


def changes_summary(done: Done, seed: int) -> str:
    """One line about the changes."""
    kinds = ((done.of_kind(kind), kind) for kind in Kind)
    made = ", ".join(f"{count:,} {kind}s" for count, kind in kinds if count)
    text = (
        f"{done.changes.total():,} changes in {done.transactions:,} transactions"
        f" in {done.seconds:.1f} s: {made or 'none'};"
        f" {done.rolled_back:,} transactions rolled back; seed {seed}"
    )
    return f"{text}{'; stopped by Ctrl-C' if done.interrupted else ''}"


def changes_counted(done: Done) -> dict[str, int]:
    """The changes, for ``--json``."""
    return {
        "changes": done.changes.total(),
        **{f"{kind}s": done.of_kind(kind) for kind in Kind},
        "transactions": done.transactions,
        "rolled_back": done.rolled_back,
    }


def _counted(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} rows of {name}" for name, count in rows.items())
