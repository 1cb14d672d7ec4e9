"""`sandbox produce tickit`: fill and change the three databases of the ticket shop."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import typer

from sandbox import ui
from sandbox.databases import statements
from sandbox.databases.known import TICKIT
from sandbox.databases.run import Done, Part, run_together
from sandbox.databases.server import check_captured, opened
from sandbox.databases.state import DatabaseState
from sandbox.databases.statements import Connection
from sandbox.databases.tables import Database
from sandbox.databases.tickit.shop import LISTINGS
from sandbox.databases.transactions import transactions
from sandbox.events.produce import INTERRUPTED, AsJson, progress, records_per_second
from sandbox.events.produce_rows import (
    Changes,
    Rate,
    Seed,
    changes_counted,
    changes_summary,
    fill_empty,
    rows_summary,
)
from sandbox.services.connect import wait_until_passed
from sandbox.services.stack import SERVICES
from sandbox.settings import load_home
from spark_ingest.errors import ConfigurationError

Scale = Annotated[
    float,
    typer.Option(
        min=0.0001,
        max=20,
        help="Size of empty databases: 1 is 49,990 users, 192,497 listings and 172,456 sales.",
    ),
]
# Percent of --changes.
_SHARES = {"ems": 8, "ecomm": 80, "crm": 12}


@dataclass(frozen=True)
class _Options:
    """The options of the command."""

    scale: float
    changes: int
    rate: str | None
    seed: int
    as_json: bool


@dataclass
class _Outcome:
    """The result for one database.

    Attributes:
        before: Number of rows its tables had.
        filled: Number of initial rows written.
        done: Its changes.
    """

    before: Mapping[str, int]
    filled: Counter[str]
    done: Done

    @property
    def is_written(self) -> bool:
        """Whether there is something for the connector to process."""
        return bool(self.filled or self.done.transactions)


def add_to(app: typer.Typer) -> None:
    """Add the command of the ticket shop to `sandbox produce`."""
    app.command("tickit", rich_help_panel="Databases")(tickit)
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command("tickit-ecomm", hidden=True, context_settings=anything)(_of_one)


def tickit(
    scale: Scale = 1.0,
    changes: Changes = 0,
    rate: Rate = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """TICKIT, a ticket shop, in three databases.

    PostgreSQL's `ems` has its categories, venues and events; PostgreSQL's `crm`,
    which takes the place of an SQL Server, its users; MariaDB's `ecomm` its days,
    listings and sales.

    Fills empty databases: always 11 categories, 205 venues, 8,798 events and the
    365 days of 2008; users, listings and sales by --scale. If there are rows, it
    reports their number and writes none. With --changes random transactions
    follow, four fifths of the changes in `ecomm`: tickets are listed, sold and
    returned, prices change; users and events are added, changed and deleted.
    Some deleted rows have sales: a sold listing, a past event, a user who asks
    to be forgotten. The same seed gives the same changes of the same rows.
    Returns when all connectors have processed the last transaction. If MariaDB
    cannot run, it is left out.

        sandbox up cdc
        sandbox produce tickit --scale 0.1
        sandbox produce tickit --changes 500
        sandbox produce tickit --changes 6000 --rate 200/s

    Ctrl-C stops it after the current transaction. Exit codes: 0 success,
    1 database error, 2 usage error or services down, 130 stopped by Ctrl-C.
    """
    _produce(_Options(scale, changes, rate, seed, as_json))


def split(changes: int, names: Sequence[str]) -> dict[str, int]:
    """Number of changes by database; the largest share gets the remainder."""
    shares = {name: _SHARES[name] for name in names}
    made = {name: changes * share // sum(shares.values()) for name, share in shares.items()}
    most = max(shares, key=lambda name: shares[name])
    return made | {most: made[most] + changes - sum(made.values())}


def _of_one() -> None:
    raise ConfigurationError(
        "the ticket shop's databases are filled and changed together: `sandbox produce tickit`"
    )


def _produce(options: _Options) -> None:
    rate = records_per_second(options.rate)
    home = load_home()
    databases, left_out = _present()
    for database in databases:
        check_captured(home, database)
    with ExitStack() as stack:
        connections = [stack.enter_context(opened(home, one)) for one in databases]
        opened_ones = list(zip(databases, connections, strict=True))
        outcomes = _filled(opened_ones, options)
        _change(opened_ones, outcomes, rate, options)
    waited = time.monotonic()
    for database in databases:
        if outcomes[database.name].is_written:
            wait_until_passed(home, database.connector)
    waited = time.monotonic() - waited
    done = sum((one.done for one in outcomes.values()), Done())
    _report(outcomes, done, waited, left_out, options)
    if done.interrupted:
        raise typer.Exit(INTERRUPTED)


def _present() -> tuple[list[Database], dict[str, str]]:
    """The databases whose server runs on this machine, and why the others do not."""
    reasons = {one.name: SERVICES[one.engine].lacks_platform() for one in TICKIT}
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    for name, reason in left_out.items():
        ui.say(f"{name} is left out: {reason}", style="yellow")
    return [one for one in TICKIT if one.name not in left_out], left_out


def _filled(
    databases: Sequence[tuple[Database, Connection]], options: _Options
) -> dict[str, _Outcome]:
    outcomes: dict[str, _Outcome] = {}
    size = max(1, round(LISTINGS * options.scale))
    with progress("filling tickit", None) as on_progress:
        written = 0
        for database, connection in databases:
            before = statements.counts(database, connection)
            filled = fill_empty(
                database, connection, before, (options.seed, size), _beyond(written, on_progress)
            )
            written += filled.total()
            outcomes[database.name] = _Outcome(before, filled, Done())
    return outcomes


def _beyond(first: int, on_progress: Callable[[int], None]) -> Callable[[int], None]:
    """Progress of what comes behind so many rows."""
    return lambda rows: on_progress(first + rows)


def _change(
    databases: Sequence[tuple[Database, Connection]],
    outcomes: Mapping[str, _Outcome],
    rate: float | None,
    options: _Options,
) -> None:
    parts = []
    shares = split(options.changes, [database.name for database, _ in databases])
    for database, connection in databases:
        changes = shares[database.name]
        if changes:
            state = DatabaseState(database, statements.stored(database, connection))
            drawn = transactions(state, database.operations, options.seed, changes)
            parts.append(Part(database, connection, drawn, changes))
    if not parts:
        return
    with progress("changing tickit", options.changes) as on_progress:
        for part, done in zip(parts, run_together(parts, rate, on_progress), strict=True):
            outcomes[part.database.name].done = done


def _report(
    outcomes: Mapping[str, _Outcome],
    done: Done,
    waited: float,
    left_out: Mapping[str, str],
    options: _Options,
) -> None:
    databases = [one for one in TICKIT if one.name in outcomes]
    if options.as_json:
        facts = {
            "databases": {
                one.name: {
                    "connector": one.connector,
                    "rows_before": outcomes[one.name].before,
                    "rows_written": dict(outcomes[one.name].filled),
                    **changes_counted(outcomes[one.name].done),
                }
                for one in databases
            },
            "left_out": left_out,
            **changes_counted(done),
            "seed": options.seed,
            "scale": options.scale,
            "seconds": round(done.seconds, 3),
            "seconds_to_connectors": round(waited, 3),
            "interrupted": done.interrupted,
        }
        ui.echo(json.dumps(facts))
        return
    for one in databases:
        found = outcomes[one.name]
        ui.echo(rows_summary(one, found.before, found.filled, options.seed))
    if options.changes:
        ui.echo(changes_summary(done, options.seed))
    names = ", ".join(one.connector for one in databases if outcomes[one.name].is_written)
    if names:
        ui.echo(f"the connectors {names} have passed them ({waited:.1f} s)")
