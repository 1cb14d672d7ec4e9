"""`sandbox produce`: generated events, reproducible by seed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from sandbox import ui
from sandbox.events.sender import DeliveryReport, StreamProducer, check_delivery
from sandbox.settings import load_home
from sandbox.streams.faults import FAULTS
from sandbox.streams.generator import Generator, generators
from sandbox.streams.timeline import LATEST_MILLIS, Plan
from sandbox.streams.times import as_text, instant_micros
from spark_ingest.errors import ConfigurationError
from spark_ingest.units import duration

app = typer.Typer(
    help="Generate events of streams, and rows and changes of databases, from a seed.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

DEFAULT_COUNT = 10_000
DEFAULT_SPAN = "2h"
# Kafka rejects timestamps more than an hour ahead; clocks may differ a little.
_FURTHEST_AHEAD_MILLIS = 55 * 60_000
# An on-time record is stamped up to two seconds after its event.
_DELAY_MILLIS = 2_000
INTERRUPTED = 130

Count = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Total number of events, late and broken ones included. Default: 10,000,"
        " or unlimited with --rate (stop with Ctrl-C).",
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        metavar="R/s",
        help="Events per second, spread evenly. Default: as fast as possible.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed: the same seed gives the same events.")]
Start = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time of the first event, ISO 8601, UTC by default. Default: such that the"
        " last record arrives now.",
    ),
]
Span = Annotated[
    str | None,
    typer.Option(
        metavar="SPAN",
        help="Time span of the events (90s, 30m, 2h, 1d). Default: 2h; without --count an"
        " event happens when it is sent.",
    ),
]
Late = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Share of events that arrive late: 1 to 30 minutes after the event time.",
    ),
]
Bad = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Share of events that cannot be decoded: " + ", ".join(FAULTS) + ", in equal parts.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the counts as one JSON object.")]

Wrong = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="Share of events that decode, but whose total is inconsistent."
    ),
]
FirstId = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of the first event; the next ones count up. Default: the number of"
        " records ever written to the topic plus one, so that no run repeats another.",
    ),
]

_SAME_RECORDS = """\
The same seed, first id ({number}), start, span, count and
shares give the same records: bytes, keys, timestamps and order. Partitions
are the same too if the registry assigns the same schema ids (a key starts
with its schema id).

The Kafka timestamp is the arrival time: 0.05 to 2 s after the event, or 1 to
30 minutes if it is late. Of N events exactly round(N * share) are
late{wrong_too} and broken. Examples:

    sandbox produce {command}                  10,000 of the last two hours
    sandbox produce {command} --rate 50/s      a live stream, until Ctrl-C
    sandbox produce {command} --late 0.05 --bad 0.01{wrong} --json
    sandbox produce {command} --first-id 1 --start 2026-01-05T09:00Z

Exit codes: 0 success, 1 delivery failed, 2 usage error or services down,
130 stopped by Ctrl-C before --count was reached."""


@dataclass(frozen=True)
class Options:
    """The options of a command."""

    count: int | None
    rate: str | None
    seed: int
    start: str | None
    span: str | None
    late: float
    bad: float
    first_id: int | None
    as_json: bool
    wrong: float


@app.callback()
def sources() -> None:
    """Generate events of streams, and rows and changes of databases, from a seed."""


def _command(generator: Generator) -> Callable[..., None]:
    """The function of a generator's command: its parameters are the options."""

    def command(
        count: Count = None,
        rate: Rate = None,
        seed: Seed = 1,
        start: Start = None,
        span: Span = None,
        late: Late = 0.0,
        bad: Bad = 0.0,
        wrong: Wrong = 0.0,
        first_id: FirstId = None,
        as_json: AsJson = False,
    ) -> None:
        options = Options(count, rate, seed, start, span, late, bad, first_id, as_json, wrong)
        _produce(generator, options)

    return command if generator.makes_wrong else ui.without_option(command, "wrong")


def _help(generator: Generator) -> str:
    same = _SAME_RECORDS.format(
        number=generator.number,
        command=generator.command,
        wrong=" --wrong 0.01" if generator.makes_wrong else "",
        wrong_too=", wrong" if generator.makes_wrong else "",
    )
    return f"{generator.help}\n\n{same}"


for _generator in generators().values():
    app.command(_generator.command, help=_help(_generator), rich_help_panel="Generators")(
        _command(_generator)
    )


def _produce(source: Generator, options: Options) -> None:
    """Generate and produce events, and report the result.

    Raises:
        ConfigurationError: Options are inconsistent, or Kafka would reject the timestamps.
        ServiceUnavailable: Broker or registry is down.
        DeliveryFailed: Some records were not delivered.
    """
    per_second, count = records_per_second(options.rate), options.count
    if count is None and per_second is None:
        count = DEFAULT_COUNT
    shares = {"--late": options.late, "--bad": options.bad, "--wrong": options.wrong}
    # 0.7, 0.2 and 0.1 do not add up to exactly 1 in binary.
    if sum(shares.values()) > 1 + 1e-9:
        named = " and ".join(f"{name} {part}" for name, part in shares.items() if part)
        raise ConfigurationError(f"{named} exceed 1 together")
    begin, step = event_times(count, per_second, options.start, options.span, options.late)
    producer = StreamProducer(load_home(), source.events, *source.beside)
    first_id = options.first_id
    if first_id is None:
        # Each event uses at most one number.
        first_id = producer.records_so_far() + 1
    if first_id + (count or 0) - 1 > source.largest:
        raise ConfigurationError(
            f"--first-id {first_id}: {count or 1:,} more go beyond the largest"
            f" {source.number}, {source.largest}; take a smaller one"
        )
    plan = Plan(
        options.seed, count, begin, step, options.late, options.bad, first_id, options.wrong
    )
    with progress(f"producing to {source.events.topic}", count) as on_progress:
        records = source.make(plan, producer.schema_ids)
        report = producer.send(records, per_second, on_progress)
    _report(source, plan, report, as_json=options.as_json)
    check_delivery(source.events, report)
    if report.interrupted and count is not None:
        raise typer.Exit(INTERRUPTED)


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, nothing elsewhere; yields the function that updates it."""
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
        ConfigurationError: It is not a positive number.
    """
    if written is None:
        return None
    try:
        rate = float(written.strip().removesuffix("/s"))
    except ValueError:
        rate = 0.0
    if not 0 < rate <= 1e9:
        raise ConfigurationError(f"--rate {written!r} is not a valid rate: write it like 500/s")
    return rate


def event_times(
    count: int | None, rate: float | None, start: str | None, span: str | None, late: float
) -> tuple[int, float]:
    """The event times of a run.

    Args:
        count: Number of events; None is unlimited.
        rate: Records per second, if they are paced.
        start: ``--start``; None lets the run end now.
        span: ``--span``; None is ``DEFAULT_SPAN``.
        late: Share of late events.

    Returns:
        First event time in milliseconds since 1970 UTC, and the milliseconds from one
        event to the next.

    Raises:
        ConfigurationError: Invalid options, or Kafka would reject the timestamps.
    """
    now = time.time_ns() // 1_000_000
    try:
        begin = None if start is None else instant_micros(start) // 1_000
    except ValueError as error:
        raise ConfigurationError(f"--start {start!r} {error}") from error
    if count is None:
        if span is not None:
            raise ConfigurationError("--span needs --count: an unlimited stream has no span")
        # Records are paced, and stamped a delay after the event: never ahead of now.
        begin = now - _DELAY_MILLIS if begin is None else begin
        step, latest = 1_000 / (rate or 1), begin
    else:
        length = duration("--span", span or DEFAULT_SPAN) // timedelta(milliseconds=1)
        if length < 1:
            raise ConfigurationError(f"--span {span}: must be at least a millisecond")
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
            f"the last record would arrive at {as_text(latest)}, and Kafka rejects"
            " timestamps more than an hour ahead; choose an earlier --start or a shorter --span"
        )
    return begin, step


def _report(source: Generator, plan: Plan, report: DeliveryReport, *, as_json: bool) -> None:
    broken = {name: report.kinds[name] for name in FAULTS}
    beside = {stream.topic: report.beside[stream.topic] for stream in source.beside}
    if as_json:
        facts = {
            "stream": source.events.name,
            "topic": source.events.topic,
            "records": report.produced,
            "delivered": report.delivered,
            "events": report.events,
            source.noun: sum(report.kinds[name] for name in source.kinds),
            **{name: report.kinds[name] for name in source.kinds},
            "bad": sum(broken.values()),
            "bad_by_kind": broken,
            "beside": beside,
            "seed": plan.seed,
            "first_id": plan.first_number,
            "start": as_text(plan.start),
            "seconds": round(report.seconds, 3),
            "records_per_second": round(report.rate),
        }
        ui.echo(json.dumps(facts))
        return
    counted = [f"{report.kinds[name]:,} {name.replace('_', ' ')}" for name in source.kinds]
    text = (
        f"{report.delivered:,} records to {', '.join((source.events.topic, *beside))}"
        f" in {report.seconds:.1f} s ({report.rate:,.0f}/s):"
        f" {', '.join(counted)}, {sum(broken.values()):,} bad"
    )
    if any(broken.values()):
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in broken.items() if count)
        text += f" ({kinds})"
    for topic, count in beside.items():
        text += f", {count:,} to {topic}"
    text += f"; {source.number} from {plan.first_number}, seed {plan.seed}"
    if report.interrupted:
        text += "; stopped by Ctrl-C"
    ui.echo(text)
