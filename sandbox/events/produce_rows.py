"""`sandbox produce` for databases: rows, and then random changes of them."""

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
    int | None, typer.Option(min=1, help="How many rows the first of the empty tables gets.")
]
Changes = Annotated[
    int,
    typer.Option(
        min=0, help="Random changes to commit, after the rows; what is rolled back does not count."
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        metavar="R/s",
        help="Changes per second, evenly. Without it: as fast as the database takes them.",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Random seed: the same one makes the same rows and changes.")
]
Truncates = Annotated[
    bool, typer.Option("--truncates", help="Now and then a table is emptied at once (TRUNCATE).")
]

_HELP = """\
{help}

Empty tables are filled: --rows of {first} ({size:,}), the others in
proportion. Where there are rows it says how many, and writes none. With
--changes random transactions follow: rows come, change, get another key, go,
come back, some of them several times in one transaction, and every twentieth
transaction is rolled back. The same seed makes the same changes of the same
rows. Returns when the connector has passed the last transaction.

    sandbox up cdc
    sandbox produce {command}
    sandbox produce {command} --changes 500
    sandbox produce {command} --changes 6000 --rate 200/s
{more}
Ctrl-C ends it between two transactions. Exit codes: 0 done, 1 the database
refuses something, 2 wrong use or no services, 130 stopped by Ctrl-C."""
_MORE = """\
    sandbox produce {command} --changes 500 --truncates
"""


@dataclass(frozen=True)
class Options:
    """The options of a command, as a person gave them."""

    rows: int | None
    changes: int
    rate: str | None
    seed: int
    truncates: bool
    as_json: bool


def _command(database: Database) -> Callable[..., None]:
    """The function of a database's command: its parameters are the options."""

    def with_truncates(
        rows: Rows = None,
        changes: Changes = 0,
        rate: Rate = None,
        seed: Seed = 1,
        truncates: Truncates = False,
        as_json: AsJson = False,
    ) -> None:
        produce_rows(database, Options(rows, changes, rate, seed, truncates, as_json))

    def without_truncates(
        rows: Rows = None,
        changes: Changes = 0,
        rate: Rate = None,
        seed: Seed = 1,
        as_json: AsJson = False,
    ) -> None:
        produce_rows(database, Options(rows, changes, rate, seed, False, as_json))

    return with_truncates if database.truncates else without_truncates


def _help(database: Database) -> str:
    known = {"command": database.command, "size": database.size, "first": database.tables[0].name}
    more = _MORE.format(**known) if database.truncates else ""
    return _HELP.format(help=database.help, more=more, **known)


def add_to(app: typer.Typer) -> None:
    """Give `sandbox produce` a command for each database that has one of its own."""
    for database in DATABASES.values():
        if database in TICKIT:
            continue
        app.command(database.command, help=_help(database), rich_help_panel="Databases")(
            _command(database)
        )


def produce_rows(database: Database, options: Options) -> None:
    """Fill a database and change it, as a person wishes, and tell what became of it.

    Raises:
        ConfigurationError: Options that nobody could mean.
        ServiceUnavailable: The database does not answer, or nothing captures it.
        MillraceError: The database refuses something, or its connector has failed.
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
    # A connector that starts again says how far it has come only after the next transaction.
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
    """Write the first rows, where no table has any.

    Args:
        before: How many rows each of its tables has.
        on_progress: Called now and then with the number of rows written.

    Returns:
        How many rows each table got; none where there were some.
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
    """What a database got at first, in a line."""
    if filled:
        return f"{database.name} got {_counted(filled)}, seed {seed}"
    return f"{database.name} had {_counted(before)}: none were written"


def changes_summary(done: Done, seed: int) -> str:
    """What was changed, in a line."""
    kinds = ((done.of_kind(kind), kind) for kind in Kind)
    made = ", ".join(f"{count:,} {kind}s" for count, kind in kinds if count)
    text = (
        f"{done.changes.total():,} changes in {done.transactions:,} transactions"
        f" in {done.seconds:.1f} s: {made or 'none'};"
        f" {done.rolled_back:,} transactions rolled back; seed {seed}"
    )
    return f"{text}{'; stopped by Ctrl-C' if done.interrupted else ''}"


def changes_counted(done: Done) -> dict[str, int]:
    """What was changed, for ``--json``."""
    return {
        "changes": done.changes.total(),
        **{f"{kind}s": done.of_kind(kind) for kind in Kind},
        "transactions": done.transactions,
        "rolled_back": done.rolled_back,
    }


def _counted(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} rows of {name}" for name, count in rows.items())
