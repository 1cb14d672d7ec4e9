"""The command that posts alerts to a webhook: alerts."""

from __future__ import annotations

import sys
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_ingest.cli.app import Options, app, console, open_lake, stop_on_signals
from spark_ingest.connect.profile import load_connections, read_target
from spark_ingest.errors import MillraceError
from spark_ingest.sources import fresh_manifest
from spark_ingest.units import duration

if TYPE_CHECKING:
    from spark_ingest.alerts.alert import Found
    from spark_ingest.alerts.alert_log import Notice


@app.command()
def alerts(
    context: typer.Context,
    every: Annotated[
        str | None, typer.Option(help="Repeat until Ctrl-C at this interval: 1m.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the alerts; post and record nothing.")
    ] = False,
    patience: Annotated[
        str, typer.Option(help="Age of an unread record at which its stream counts as stopped.")
    ] = "10m",
    quarantine_window: Annotated[
        str, typer.Option(help="Alert on records quarantined within this time.")
    ] = "1h",
) -> None:
    """Post alerts to a webhook: once when a problem begins, once when it is resolved.

    Alerts are raised for failed dbt models and tests (from state.runs, which each
    `dbt build` writes), sources that exceed their `freshness` (`error_after`, or
    `warn_after` without it), marts older than `config.meta.max_age` of an
    exposure, quarantined records, streams with unread records, and records that
    expired before they were read. Each names the command that helps.

    The webhook is configured under `alerts` in profiles/ingest.yml; without one,
    alerts are only printed. Posted alerts are recorded in bronze.ingest_alerts.
    If the receiver does not answer, the rest is posted at the next check; without
    --every the command then exits 1. Streams are not affected.
    """
    pause = duration("--every", every).total_seconds() if every else None
    patient, window = (
        duration("--patience", patience),
        duration("--quarantine-window", quarantine_window),
    )
    chosen: Options = context.obj
    from spark_ingest.alerts.look import Limits, look, post_news
    from spark_ingest.alerts.promises import read_promises
    from spark_ingest.alerts.webhook import webhook_of
    from spark_ingest.connect.broker import Broker
    from spark_ingest.lake import jvm_watch
    from spark_ingest.lake.jvm import TROUBLE, java_reason

    webhook = webhook_of(read_target(chosen.profile, chosen.target))
    if webhook is None and not dry_run:
        where = f"{chosen.profile}: targets.…alerts.webhook"
        print(f"no webhook in {where}: alerts are only printed", file=sys.stderr)
    broker = Broker(load_connections(chosen.profile, chosen.target))
    promises = read_promises(chosen.manifest or fresh_manifest(chosen.project))
    streams, spark = open_lake(context, None)
    stopping = stop_on_signals() if pause is not None else threading.Event()
    limits = Limits(patient, window)
    while True:
        began = time.monotonic()
        try:
            found = look(spark, broker, streams, promises, limits)
            if webhook is None or dry_run:
                _print_open(found)
            else:
                posted, failure = post_news(spark, found, webhook.post)
                _print_posted(posted, found)
                if failure is not None:
                    raise failure
        except TROUBLE as error:
            if pause is None or jvm_watch.has_exited(error):
                raise
            reason = error if isinstance(error, MillraceError) else java_reason(error)
            print(f"{_now()} {reason}: retry in {every}", file=sys.stderr, flush=True)
        if pause is None or stopping.wait(max(pause - (time.monotonic() - began), 0)):
            return


def _print_open(found: Found) -> None:
    if not found.alerts:
        print("no open alerts", flush=True)
        return
    shown = Table("kind", "subject", "message", "command")
    for alert in found.alerts:
        shown.add_row(alert.kind, alert.subject, alert.message, alert.help)
    console().print(shown)


def _print_posted(posted: list[Notice], found: Found) -> None:
    for notice in posted:
        alert = notice.alert
        print(f"{_now()} {notice.event}: {alert.kind} {alert.subject}: {alert.message}")
    count = len(found.alerts)
    print(f"{_now()} {len(posted)} posted, {count} open", flush=True)


def _now() -> str:
    return f"{datetime.now(UTC):%H:%M:%S}"
