"""The command `sandbox`: the parts of a lake on this machine, on 127.0.0.1 only."""

from __future__ import annotations

import errno
import shlex
import shutil
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from sandbox.doctor import examine
from sandbox.events import poll, produce, produce_csv, produce_rows, produce_tickit, replay
from sandbox.install import parts, spark_conf
from sandbox.processes.logs import follow, log_file, show
from sandbox.services import stack
from sandbox.services.connect import CONNECT, FAILED, connector_status, describe
from sandbox.services.stack import State, Status
from sandbox.settings import Home, chosen_ports, load_home, with_ports
from sandbox.tour.demo import DEFAULT_COUNT, DEFAULT_SCALE, SHARES, Demo
from sandbox.tour.live import DEFAULT_RATE, Live
from sandbox.tour.query import Format, run_query
from sandbox.tour.scenarios import EVENTS, SCENARIOS
from sandbox.ui import echo, err, out, say
from spark_ingest.errors import ConfigurationError, MillraceError

app = typer.Typer(
    name="sandbox",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="""What a lake needs around it, on this machine: Kafka, a registry, events, SQL.

    All state lives in SANDBOX_HOME (default: .sandbox in the checkout).
    All servers listen on 127.0.0.1 only. A first round:

      sandbox up                              start broker and registry
      sandbox produce pagila --count 1000     send sale events
      spark-ingest run --once                 land them in bronze
      sandbox sql "select count(*) from bronze.pagila__sales"
      sandbox down                            stop; the data is kept

    Exit codes: 0 good, 1 what was checked does not hold,
    2 wrong use or configuration.
    """,
)


Services = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SERVICE]...",
        help="kafka, registry; when asked for: redshift, thrift, postgres, mariadb,"
        " connect, and cdc, which is the last three.",
    ),
]


@app.command()
def up(
    service: Services = None,
    port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N",
            help="Another port: kafka=29092, kafka-controller=N, registry=N, redshift=N,"
            " redshift-postgres=N, redshift-lake=N, thrift=N, postgres=N, mariadb=N, connect=N."
            " Remembered.",
        ),
    ] = None,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure", help="TLS, users and permissions, for as long as this sandbox has data."
        ),
    ] = False,
) -> None:
    """Start the services, create the topics, register the schemas.

    A second `up` changes nothing. Missing parts are fetched first. Exit 1 when
    all runs and a connector has failed.

      sandbox up                             broker and registry
      sandbox up kafka                       the broker alone
      sandbox up redshift                    the Redshift stand-in, for
                                             dbt build --target redshift-standin
      sandbox up cdc                         captured databases, Kafka Connect:
                                             docs/capture.md
      sandbox up --port kafka=29092          on another port, from now on
      SANDBOX_PORT_OFFSET=1000 sandbox up    a second checkout beside the first
      sandbox up --secure                    a sandbox without data: certificates,
                                             passwords, permissions; see
                                             docs/ingest.md, Security
    """
    home = with_port_options(load_home(), port or [])
    started = stack.up(home, service or [], secure=secure)
    _tell_security(home)
    for status in stack.status(home):
        if status.service.name in started:
            echo(f"started  {_line(status)}")
        elif status.state is State.READY:
            echo(f"running  {_line(status)}")
    raise typer.Exit(1 if _tell_connectors(home) else 0)


@app.command()
def down(service: Services = None) -> None:
    """Stop the services. Their data is kept."""
    stopped = stack.down(load_home(), service or [])
    echo(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")


@app.command()
def status() -> None:
    """Show each service: stopped, starting, ready or died; each connector, and its lag.

    Exit 1 when a service died or a connector has failed.
    """
    home = load_home()
    _tell_security(home)
    dead = False
    for found in stack.status(home):
        echo(f"{found.state:<9}{_line(found)}", style=_STYLES[found.state])
        if found.state is State.DIED and found.record is not None:
            dead = True
            say(str(stack.died(found.record)))
    failed = _tell_connectors(home)
    raise typer.Exit(1 if dead or failed else 0)


@app.command()
def logs(
    component: Annotated[str, typer.Argument(help="A service, or a program of the demo.")],
    follow_it: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new lines until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="Lines from the end of the log.")
    ] = 50,
) -> None:
    """Show the end of a service's log.

    sandbox logs kafka
    sandbox logs registry --follow
    """
    file = log_file(load_home(), component)
    position = show(file, lines)
    if follow_it:
        follow(file, position)


@app.command()
def reset(yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Stop the services and remove their data, the lake and the logs. Settings are kept."""
    home = load_home()
    if not yes and not (
        sys.stdin.isatty() and typer.confirm(f"Remove all data in {home.path}?", err=True)
    ):
        raise ConfigurationError(
            f"nothing removed: `sandbox reset --yes` removes {home.path}'s data"
        )
    stack.down(home)
    if home.path.exists():
        with stack.work_lock(home):
            for folder in (home.services, home.lake, home.logs, home.security):
                shutil.rmtree(folder, ignore_errors=True)
            # Spark opens the catalogue's file, but makes no folder for it.
            home.lake.mkdir()
            home.env_file.unlink(missing_ok=True)
    echo(f"removed services' data, lake and logs of {home.path}")


@app.command()
def env() -> None:
    """Print the exports for other programs: `eval "$(sandbox env)"`."""
    for name, value in load_home().environment().items():
        print(f"export {name}={shlex.quote(value)}")


@app.command()
def doctor() -> None:
    """Check everything that Millrace needs and say how to fix it. Exit 1 when a check fails."""
    failed = 0
    for finding in examine():
        failed += not finding.good
        mark = ("ok    ", "green") if finding.good else ("FAILED", "bold red")
        out.print(f"[{mark[1]}]{mark[0]}[/] ", end="")
        echo(f"{finding.name}: {finding.text}")
    raise typer.Exit(1 if failed else 0)


@app.command(name="parts")
def parts_command(
    component: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMPONENT]...",
            help="spark, kafka, registry, postgres; default these. By name alone:"
            " connect, avro-converter, mariadb (of `sandbox up cdc`).",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare every byte; fetch again what is damaged.")
    ] = False,
) -> None:
    """Fetch the Java parts into the user's cache, once, and archive Spark's classes.

    Both are used offline afterwards.
    """
    names = component or list(parts.components())
    if check:
        for name in names:
            if parts.damaged(name):
                say(f"{name} is damaged: fetching it again", style="yellow")
                parts.remove(name)
    parts.fetch(names)
    if "spark" in names:
        spark_conf.bring_spark()
    for name in names:
        echo(f"{name}: {parts.component_folder(name)}")


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(help='One statement; "-" reads standard input.')],
    output: Annotated[Format, typer.Option("--format", help="Output format.")] = (Format.TABLE),
) -> None:
    """Run Spark SQL on the lake. Only the result goes to standard output.

    sandbox sql "show tables in marts"
    sandbox sql --format csv "select * from marts.rpt_region_sales" > regions.csv
    """
    text = sys.stdin.read() if statement == "-" else statement
    run_query(load_home(), text, output, sys.stdout)


produce_rows.add_to(produce.app)
produce_tickit.add_to(produce.app)
produce_csv.add_to(produce.app)
app.add_typer(produce.app, name="produce")
app.command()(replay.replay)
app.command()(poll.poll)


@app.command()
def demo(
    shows: Annotated[
        str,
        typer.Argument(
            metavar="[events|tickit]",
            help="Two generators' events, or a ticket shop's three databases.",
        ),
    ] = EVENTS.name,
    count: Annotated[
        int,
        typer.Option(min=len(SHARES), help="How many events to send, as many from each generator."),
    ] = DEFAULT_COUNT,
    scale: Annotated[
        float,
        typer.Option(
            min=0.001,
            max=20,
            help="How large the ticket shop is, if its databases are empty: 1 has 172,456 sales.",
        ),
    ] = DEFAULT_SCALE,
    keep: Annotated[
        bool, typer.Option("--keep", envvar="KEEP", help="Leave the services running.")
    ] = False,
    secure: Annotated[
        bool, typer.Option("--secure", help="Over TLS, as `sandbox up --secure`.")
    ] = False,
) -> None:
    """Run the pipeline once, end to end: parts, services, events, ingest, dbt build, docs.

      sandbox demo            events of two generators, through Kafka to the marts
      sandbox demo tickit     a ticket shop's databases, captured, to its marts

    The events are rental sales (pagila) and lines of smoothie purchases, as many
    of each; products and restockings come on top and are not counted. Some events
    are late, some wrong and some cannot be decoded, on purpose. Tests of code
    (unit tests, tests of macros) are left out, and captured tables that hold
    nothing with what is built from them: plain `dbt build` has both. Ends with a
    report read from the tables. Running it again adds events and builds
    increments. The services that it started are stopped once all is ingested.

    Of the ticket shop two PostgreSQL databases and one of MariaDB are filled and
    changed, captured by Debezium, and only its group of models is built. Where
    MariaDB cannot run, its tables and what is built from them are left out.
    """
    if shows not in SCENARIOS:
        raise ConfigurationError(f"there is no demo {shows!r}; known: {', '.join(SCENARIOS)}")
    Demo(load_home(), count, keep, secure, SCENARIOS[shows], scale).run()


@app.command()
def live(
    rate: Annotated[
        str, typer.Option(metavar="R/s", help="Events per second, as many from each generator.")
    ] = f"{DEFAULT_RATE:g}/s",
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="N",
            help="Stop after so many minutes of rounds; without it, at Ctrl-C.",
        ),
    ] = None,
) -> None:
    """Keep the marts up to date while events come, until Ctrl-C.

    Starts broker and registry where they are down, a producer for each generator,
    `spark-ingest run --every 5s`, and dbt in a loop: a round builds what is new
    into the marts that are incremental, for as long as new records come. What is
    missing is built and tested first, as in the demo. Shows after each round how
    long it took, how many rows came, the age (now minus the newest event time
    that the facts hold, the facts that are furthest behind) and the records that
    ingest has not landed yet.

      sandbox live                       500 events/s, until Ctrl-C
      sandbox live --rate 50/s           50 events/s
      sandbox live --minutes 5           ends after five minutes, with a summary
      sandbox logs live-rounds           what dbt said; also live-ingest

    Reports, tests and docs are not in the loop: run `dbt build` afterwards. Do
    not run dbt, `sandbox demo` or another ingest on this lake beside it.

    Ctrl-C ends all of it: the batch and the round at work are finished, and what
    it started is stopped. Exit codes: 0 ended as asked, 1 one of its programs
    died, 2 wrong use or configuration.
    """
    per_second = produce.records_per_second(rate)
    Live(load_home(), per_second or DEFAULT_RATE, minutes).run()


_STYLES = {State.STOPPED: "dim", State.STARTING: "yellow", State.READY: "", State.DIED: "bold red"}


def _tell_security(home: Home) -> None:
    if home.secure:
        echo(f"secure   certificates and passwords in {home.security}")


def _tell_connectors(home: Home) -> bool:
    """Show the connectors of a Connect that runs; whether one has failed."""
    if stack.status_of(home, CONNECT).state is not State.READY:
        return False
    found = connector_status(home)
    for each in found:
        style = "bold red" if each.state == FAILED else ""
        echo(f"{each.state:<9}{describe(each)}", style=style)
    return any(each.state == FAILED for each in found)


def _line(found: Status) -> str:
    name = found.service.name
    if found.state in (State.STOPPED, State.DIED) or found.record is None:
        return name
    port = found.record.ports[found.service.ports[0]]
    return f"{name:<10}127.0.0.1:{port}  pid {found.record.pid}  log {found.record.log}"


def with_port_options(home: Home, options: list[str]) -> Home:
    """The home with what ``--port NAME=N`` asks for."""
    chosen: dict[str, int] = {}
    for option in options:
        name, equals, number = option.partition("=")
        if not equals or not number.isdigit():
            raise ConfigurationError(f"--port {option}: write it as kafka=29092")
        chosen[name] = int(number)
    return with_ports(home, chosen_ports(home) | chosen) if chosen else home


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    """End by an exception, so that what was started is stopped."""
    raise SystemExit(143)


def main() -> None:
    """The entry point: errors as one line, exit codes as documented."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except MillraceError as error:
        err.print("[bold red]error:[/] ", end="")
        say(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        err.print("[bold red]error:[/] ", end="")
        say(f"the disk is full ({error.filename or 'sandbox'}): make room and try again")
        sys.exit(ConfigurationError.exit_code)


if __name__ == "__main__":
    main()
