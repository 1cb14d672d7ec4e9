"""The command `sandbox`: a local lakehouse environment, on 127.0.0.1 only."""

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
from sandbox.services.cluster.spark import cluster_environment
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
    help="""A local environment for the lake: Kafka, schema registry, sample events, SQL.

    All state lives in SANDBOX_HOME (default: .sandbox in the checkout).
    All servers listen on 127.0.0.1 only. To get started:

      sandbox up                              start broker and registry
      sandbox produce pagila --count 1000     send sale events
      spark-ingest run --once                 ingest them into bronze
      sandbox sql "select count(*) from bronze.pagila__sales"
      sandbox down                            stop; the data is kept

    Exit codes: 0 success, 1 failure, 2 usage or configuration error.
    """,
)


Services = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SERVICE]...",
        help="Default: kafka, registry. On request: redshift, thrift, postgres, mariadb,"
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
            help="Use another port: kafka=29092, kafka-controller=N, registry=N, redshift=N,"
            " redshift-postgres=N, redshift-lake=N, thrift=N, postgres=N, mariadb=N, connect=N,"
            " s3=N, spark-cluster=N, spark-cluster-ui=N."
            " Remembered.",
        ),
    ] = None,
    secure: Annotated[
        bool,
        typer.Option("--secure", help="TLS, users and ACLs; applies until `sandbox reset`."),
    ] = False,
) -> None:
    """Start the services, create the topics, register the schemas.

    Idempotent. Missing binaries are downloaded first. Exits with 1 if a
    connector has failed.

      sandbox up                             broker and registry
      sandbox up kafka                       broker only
      sandbox up redshift                    the Redshift emulator, for
                                             dbt build --target redshift-standin
      sandbox up cdc                         captured databases, Kafka Connect:
                                             docs/capture.md
      sandbox up s3 spark-cluster            a Spark cluster with an object store:
                                             docs/your-cluster.md
      sandbox up --port kafka=29092          on another port, remembered
      SANDBOX_PORT_OFFSET=1000 sandbox up    a second checkout in parallel
      sandbox up --secure                    needs a sandbox without data;
                                             certificates, passwords, ACLs: see
                                             docs/ingest.md, Security
    """
    home = with_port_options(load_home(), port or [])
    started = stack.up(home, service or [], secure=secure)
    _print_security(home)
    for status in stack.status(home):
        if status.service.name in started:
            echo(f"started  {_line(status)}")
        elif status.state is State.READY:
            echo(f"running  {_line(status)}")
    raise typer.Exit(1 if _print_connectors(home) else 0)


@app.command()
def down(service: Services = None) -> None:
    """Stop the services. Their data is kept."""
    stopped = stack.down(load_home(), service or [])
    echo(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")


@app.command()
def status() -> None:
    """Show the state of each service and connector, and the connector lag.

    Services are stopped, starting, ready or died. Exits with 1 if a service
    died or a connector has failed.
    """
    home = load_home()
    _print_security(home)
    dead = False
    for found in stack.status(home):
        echo(f"{found.state:<9}{_line(found)}", style=_STYLES[found.state])
        if found.state is State.DIED and found.record is not None:
            dead = True
            say(str(stack.died(found.record)))
    failed = _print_connectors(home)
    raise typer.Exit(1 if dead or failed else 0)


@app.command()
def logs(
    component: Annotated[str, typer.Argument(help="A service, or a program started by the demo.")],
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
def env(
    cluster: Annotated[
        bool, typer.Option("--cluster", help="The Spark cluster and S3, not the local Spark.")
    ] = False,
) -> None:
    """Print the exports for other programs: `eval "$(sandbox env)"`."""
    home = load_home()
    exports = cluster_environment(home) if cluster else home.environment()
    if cluster:
        # The settings there are those of the local Spark.
        print("unset SPARK_CONF_DIR")
    for name, value in exports.items():
        print(f"export {name}={shlex.quote(value)}")


@app.command()
def doctor() -> None:
    """Check all requirements of Millrace and suggest fixes. Exits with 1 if a check fails."""
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
            help="Default: spark, kafka, registry, postgres. On request: connect,"
            " avro-converter, mariadb (for `sandbox up cdc`), aws, spark-4.0 (for `make"
            " cluster-archive`).",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Verify checksums; download damaged files again.")
    ] = False,
) -> None:
    """Download the Java binaries into the user's cache and archive Spark's classes.

    Done once; both are used offline afterwards.
    """
    names = component or list(parts.components())
    if check:
        for name in names:
            if parts.damaged(name):
                say(f"{name} is damaged: downloading it again", style="yellow")
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
            help="Events of two generators, or the three databases of a ticket shop.",
        ),
    ] = EVENTS.name,
    count: Annotated[
        int,
        typer.Option(
            min=len(SHARES), help="Number of events to send, split evenly between the generators."
        ),
    ] = DEFAULT_COUNT,
    scale: Annotated[
        float,
        typer.Option(
            min=0.001,
            max=20,
            help="Size of the ticket shop, if its databases are empty: 1 has 172,456 sales.",
        ),
    ] = DEFAULT_SCALE,
    keep: Annotated[
        bool, typer.Option("--keep", envvar="KEEP", help="Leave the services running.")
    ] = False,
    secure: Annotated[
        bool, typer.Option("--secure", help="Use TLS and ACLs, as `sandbox up --secure` does.")
    ] = False,
) -> None:
    """Run the pipeline once, end to end: parts, services, events, ingest, dbt build, docs.

      sandbox demo            events of two generators, through Kafka to the marts
      sandbox demo tickit     a ticket shop's databases, captured, to its marts

    The events are rental sales (pagila) and smoothie purchase lines, the same
    number of each; products and restockings are sent in addition and not counted.
    Some events are late, some wrong and some undecodable, on purpose. Unit tests,
    macro tests, and empty captured tables with their downstream models are
    excluded; a plain `dbt build` includes them. Ends with a report read from the
    tables. Running it again adds events and builds increments. The services that
    it started are stopped after ingest.

    For the ticket shop, two PostgreSQL databases and one MariaDB database are
    filled, changed and captured by Debezium, and only its group of models is
    built. If MariaDB cannot run, its tables and their downstream models are
    excluded.
    """
    if shows not in SCENARIOS:
        raise ConfigurationError(f"there is no demo {shows!r}; known: {', '.join(SCENARIOS)}")
    Demo(load_home(), count, keep, secure, SCENARIOS[shows], scale).run()


@app.command()
def live(
    rate: Annotated[
        str,
        typer.Option(metavar="R/s", help="Events per second, split evenly between the generators."),
    ] = f"{DEFAULT_RATE:g}/s",
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="N",
            help="Stop after N minutes. Default: run until Ctrl-C.",
        ),
    ] = None,
) -> None:
    """Keep the marts up to date while events come, until Ctrl-C.

    Starts broker and registry if they are down, a producer for each generator,
    `spark-ingest run --every 5s`, and dbt in a loop: each round runs the
    incremental marts that have new records. Missing models are built and tested
    first, as in the demo. After each round it shows its duration, the rows added,
    the age (now minus the newest event time in the fact table that is furthest
    behind) and the ingest lag in records.

      sandbox live                       500 events/s, until Ctrl-C
      sandbox live --rate 50/s           50 events/s
      sandbox live --minutes 5           stop after five minutes, with a summary
      sandbox logs live-rounds           the output of dbt; also live-ingest

    Reports, tests and docs are not in the loop: run `dbt build` afterwards. Do
    not run dbt, `sandbox demo` or another ingest on this lake at the same time.

    Ctrl-C finishes the current batch and round, then stops everything that it
    started. Exit codes: 0 success, 1 one of its programs died, 2 usage or
    configuration error.
    """
    per_second = produce.records_per_second(rate)
    Live(load_home(), per_second or DEFAULT_RATE, minutes).run()


_STYLES = {State.STOPPED: "dim", State.STARTING: "yellow", State.READY: "", State.DIED: "bold red"}


def _print_security(home: Home) -> None:
    if home.secure:
        echo(f"secure   certificates and passwords in {home.security}")


def _print_connectors(home: Home) -> bool:
    """Show the connectors if Connect is running; true if one has failed."""
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
    return f"{name:<14}127.0.0.1:{port}  pid {found.record.pid}  log {found.record.log}"


def with_port_options(home: Home, options: list[str]) -> Home:
    """The home with the ports of ``--port NAME=N``."""
    chosen: dict[str, int] = {}
    for option in options:
        name, equals, number = option.partition("=")
        if not equals or not number.isdigit():
            raise ConfigurationError(f"--port {option}: write it as kafka=29092")
        chosen[name] = int(number)
    return with_ports(home, chosen_ports(home) | chosen) if chosen else home


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    """Exit by an exception, so that started services are stopped."""
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
        say(f"the disk is full ({error.filename or 'sandbox'}): free some space and try again")
        sys.exit(ConfigurationError.exit_code)


if __name__ == "__main__":
    main()
