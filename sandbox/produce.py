"""`sandbox produce`: made-up events, the same ones for the same seed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from sandbox import ui
from sandbox.sending import Outlet, Tally, check_delivery
from sandbox.settings import load_home
from sandbox.streams import STREAMS, Stream
from sandbox.streams.faults import FAULTS
from sandbox.streams.pagila.sales import LARGEST_PAYMENT_ID, sales
from sandbox.streams.timeline import LATE, LATEST_MILLIS, ON_TIME, Plan, timeline
from sandbox.times import as_text, instant_micros, span_millis
from spark_ingest.errors import ConfigurationError

app = typer.Typer(
    help="Send made-up events to a stream: seeded, late and broken ones on request.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

DEFAULT_COUNT = 10_000
DEFAULT_SPAN = "2h"
# Kafka refuses records stamped more than an hour ahead; clocks may differ a little.
_FURTHEST_AHEAD_MILLIS = 55 * 60_000
# An on-time record is stamped up to two seconds after its event.
_DELAY_MILLIS = 2_000
_INTERRUPTED = 130


@app.callback()
def sources() -> None:
    """Send made-up events to a stream: seeded, late and broken ones on request."""


@app.command(rich_help_panel="Sources")
def pagila(
    count: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Records in all, late and broken ones included. Without it: 10,000,"
            " or no end when there is a --rate (Ctrl-C stops).",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="R/s",
            help="Records per second, evenly. Without it: as fast as the broker takes them.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Other seed, other events.")] = 1,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="First event time, ISO 8601, UTC when it names no zone. Default: so that"
            " the last record arrives now.",
        ),
    ] = None,
    span: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="Event times spread over this (90s, 30m, 2h, 1d). Default: 2h; without"
            " --count an event happens when it is sent.",
        ),
    ] = None,
    late: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="This share arrives 1 to 30 minutes after its event, at the place in the"
            " stream where it arrives.",
        ),
    ] = 0.0,
    bad: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="This share is no sale but bytes that cannot be decoded: "
            + ", ".join(FAULTS)
            + ", in equal parts.",
        ),
    ] = 0.0,
    first_id: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="payment_id of the first sale, the next has the next. Default: one more"
            " than the topic has ever taken, so that runs do not collide.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as one JSON object.")
    ] = False,
) -> None:
    """Sales of the Pagila shops, to topic pagila.sales.avro, keyed by customer.

    The same seed, first id, start, span, count and shares give the same
    records: bytes, keys, timestamps and order; also the same partitions, as
    long as the registry has the schemas under the same ids (a key begins with
    its schema's id).

    The Kafka timestamp is when a record arrives: 0.05 to 2 s after its event,
    1 to 30 minutes when late. Of N records exactly round(N * share) are late
    and broken. Examples:

        sandbox produce pagila                  10,000 of the last two hours
        sandbox produce pagila --rate 50/s      a live stream, until Ctrl-C
        sandbox produce pagila --late 0.05 --bad 0.01 --json
        sandbox produce pagila --first-id 1 --start 2026-01-05T09:00Z

    Exit codes: 0 all sent, 1 some not delivered, 2 wrong use or no services,
    130 stopped by Ctrl-C before --count was reached.
    """
    stream = STREAMS["pagila.sales"]
    per_second = records_per_second(rate)
    if count is None and per_second is None:
        count = DEFAULT_COUNT
    if late + bad > 1:
        raise ConfigurationError(
            f"--late {late} and --bad {bad} are more than all records; together 1 at most"
        )
    begin, step = event_times(count, per_second, start, span, late)
    outlet = Outlet(load_home(), stream)
    if first_id is None:
        first_id = outlet.records_so_far() + 1
    if first_id + (count or 0) - 1 > LARGEST_PAYMENT_ID:
        raise ConfigurationError(
            f"--first-id {first_id}: {count or 1:,} more go beyond the largest payment_id,"
            f" {LARGEST_PAYMENT_ID}; take a smaller one"
        )
    plan = Plan(seed, count, begin, step, late, bad, first_id)
    draw = sales(outlet.key_schema_id, outlet.value_schema_id)
    with progress(f"producing to {stream.topic}", count) as on_progress:
        tally = outlet.send(timeline(plan, draw), per_second, on_progress)
    _report(stream, plan, tally, as_json=as_json)
    check_delivery(stream, tally)
    if tally.interrupted and count is not None:
        raise typer.Exit(_INTERRUPTED)


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere; gives the function that moves it."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=ui.err,
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)


def records_per_second(written: str | None) -> float | None:
    """The number in ``500/s`` or ``500``; None stays None.

    Raises:
        ConfigurationError: It is no positive number.
    """
    if written is None:
        return None
    try:
        rate = float(written.strip().removesuffix("/s"))
    except ValueError:
        rate = 0.0
    if not 0 < rate <= 1e9:
        raise ConfigurationError(
            f"--rate {written!r} is no number of records per second: write it like 500/s"
        )
    return rate


def event_times(
    count: int | None,
    rate: float | None,
    start: str | None,
    span: str | None,
    late: float,
) -> tuple[int, float]:
    """When the events of a run happen.

    Args:
        count: How many there are; None is without end.
        rate: Records per second, if they are paced.
        start: First event time as a person wrote it; None ends the run now.
        span: Over how long they spread, likewise; None is ``DEFAULT_SPAN``.
        late: The share that arrives late.

    Returns:
        First event time in milliseconds since 1970 UTC, and the milliseconds from one
        event to the next.

    Raises:
        ConfigurationError: Not understood, or Kafka would refuse the timestamps.
    """
    now = time.time_ns() // 1_000_000
    try:
        begin = None if start is None else instant_micros(start) // 1_000
    except ValueError as error:
        raise ConfigurationError(f"--start {start!r} {error}") from error
    if count is None:
        if span is not None:
            raise ConfigurationError(
                "--span needs --count: a stream without end has none"
            )
        begin = now if begin is None else begin
        step, latest = 1_000 / (rate or 1), begin
    else:
        try:
            length = span_millis(span or DEFAULT_SPAN)
        except ValueError as error:
            raise ConfigurationError(f"--span {span!r} {error}") from error
        delay = LATEST_MILLIS if late else _DELAY_MILLIS
        if begin is None:
            begin = now - length - delay
        step, latest = length / count, begin + length + delay
    if begin < 0:
        raise ConfigurationError(
            f"first event at {as_text(begin)}: Kafka has no timestamps before 1970;"
            " choose a later --start or a shorter --span"
        )
    if latest > now + _FURTHEST_AHEAD_MILLIS:
        raise ConfigurationError(
            f"the last record would arrive at {as_text(latest)}, and Kafka refuses what is"
            " stamped more than an hour ahead; choose an earlier --start or a shorter --span"
        )
    return begin, step


def _report(stream: Stream, plan: Plan, tally: Tally, *, as_json: bool) -> None:
    broken = {name: tally.kinds[name] for name in FAULTS}
    sold = tally.kinds[ON_TIME] + tally.kinds[LATE]
    if as_json:
        facts = {
            "stream": stream.name,
            "topic": stream.topic,
            "records": tally.handed_over,
            "delivered": tally.delivered,
            "sales": sold,
            "on_time": tally.kinds[ON_TIME],
            "late": tally.kinds[LATE],
            "bad": sum(broken.values()),
            "bad_by_kind": broken,
            "seed": plan.seed,
            "first_id": plan.first_number,
            "start": as_text(plan.start),
            "seconds": round(tally.seconds, 3),
            "records_per_second": round(tally.rate),
        }
        ui.tell(json.dumps(facts))
        return
    text = (
        f"{tally.delivered:,} records to {stream.topic} in {tally.seconds:.1f} s"
        f" ({tally.rate:,.0f}/s): {tally.kinds[ON_TIME]:,} on time,"
        f" {tally.kinds[LATE]:,} late, {sum(broken.values()):,} bad"
    )
    if any(broken.values()):
        kinds = ", ".join(
            f"{count:,} {kind}" for kind, count in broken.items() if count
        )
        text += f" ({kinds})"
    text += f"; payment_id from {plan.first_number}, seed {plan.seed}"
    if tally.interrupted:
        text += "; stopped by Ctrl-C"
    ui.tell(text)
