"""What the tests share: a sandbox of their own, a Spark session on its lake, its services.

The folder below ``tests/python`` gives a test its marker: unit, interleavings, spark, stack, …
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadFileScheduling

from sandbox.install import parts, spark_conf
from sandbox.processes import process
from sandbox.services import stack as services
from sandbox.settings import DEFAULT_PORTS, PROJECT, Home, save_settings
from tests.python.programs import ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
# A program that hangs must fail its test, not the whole run.
PROGRAM_SECONDS = 1100
# Which of pytest-xdist's workers this is; none when there is only this process.
_WORKER = os.environ.get("PYTEST_XDIST_WORKER")
WORKER = int(_WORKER.removeprefix("gw")) if _WORKER else None
_OF_THE_DEMO = (
    *("bench_dashboard", "dashboard", "demo", "docs_site", "live"),
    *("planted_faults", "redshift"),
)
# How the names of files begin: one that takes minutes must not be what is left at the end.
_LONGEST_FIRST = (
    *("spark/test_increments", "stack/test_demo", "parity/", "platform/", "spark/test_random"),
    *("spark/test_restarted", "stack/test_ingest", "spark/test_exports", "render/"),
    *("spark/", "interleavings/", "histories/", "stack/", "fault/", "unit/"),
)
# Files that ask for one fixture of a session which takes long to make.
_TOGETHER = {
    **{f"tests/python/stack/test_{name}.py": "demo" for name in _OF_THE_DEMO},
    **{str(file.relative_to(PROJECT)): "render" for file in HERE.glob("render/test_*.py")},
    **{str(file.relative_to(PROJECT)): "parsed" for file in HERE.glob("unit/dbt/test_*.py")},
}


def pytest_configure() -> None:
    """Prepare what every program that a test starts inherits.

    A job in the background starts with Ctrl-C ignored; Python leaves it so, and the tests of
    it would wait for ever. And Spark's JVMs live for seconds here.
    """
    os.environ.setdefault("SPARK_SUBMIT_OPTS", spark_conf.BRIEF_JVM)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its folder's name.

    With several workers the files that take longest come first: the short ones fill what is
    left at the end.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(item.path.relative_to(HERE).parts[0])
    if WORKER is not None:
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    name = str(item.path.relative_to(HERE))
    return next(at for at, begins in enumerate(_LONGEST_FIRST) if name.startswith(begins))


class _ByFile(LoadFileScheduling):
    """A file stays on one worker, and so do those that share what takes long to make."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return _TOGETHER.get(file, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    """Share the tests among the workers."""
    return _ByFile(config, log)


def free_ports(count: int) -> list[int]:
    """Ports on 127.0.0.1 that nobody listens on now, all different.

    Below those that the system gives to outgoing connections, which could take one
    between this moment and the service's start. Each worker has a range of its own, for
    the same reason.
    """
    first = 20_000 + (WORKER or 0) % 8 * 1500
    ports = random.sample(range(first, first + 1500), 200)
    return [port for port in ports if process.port_is_free(port)][:count]


def make_home(path: Path) -> Home:
    """A sandbox on free ports, with its settings written."""
    ports = dict(zip(DEFAULT_PORTS, free_ports(len(DEFAULT_PORTS)), strict=True))
    home = Home(path.resolve(), ports)
    save_settings(home)
    return home


@dataclass(frozen=True)
class Stack:
    """Running services and how to use them.

    Attributes:
        home: Their sandbox.
        env: The environment in which programs find them.
    """

    home: Home
    env: dict[str, str]

    def run(
        self, *command: str, check: bool = True, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a console program of this Python's environment in the checkout.

        Args:
            command: The program's name (`sandbox`, `spark-ingest`, `dbt`) and arguments.
            check: Fail, showing what it wrote, when it does not exit with 0.
            stdin: Text for its standard input.
        """
        program = Path(sys.executable).parent / command[0]
        done = ran([str(program), *command[1:]], env=self.env, stdin=stdin, timeout=PROGRAM_SECONDS)
        if check and done.returncode != 0:
            pytest.fail(
                f"{' '.join(command)} exited with {done.returncode}\n"
                f"--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
            )
        return done


def program_environment(home: Home) -> dict[str, str]:
    """This process's environment, without what would move the sandbox's ports."""
    env = {**os.environ, **home.environment()}
    env.pop("SANDBOX_PORT_OFFSET", None)
    return env


def bring_spark(home: Home) -> None:
    """Let Spark open the lake of a sandbox: its JARs, and its settings, rendered."""
    spark_conf.bring_spark()
    spark_conf.render(home, home.spark_conf)


def add_to_class_path(spark_conf_folder: Path, component: str) -> None:
    """Let the JVM of a rendered configuration see one more component, fetched if need be."""
    parts.fetch([component])
    file = spark_conf_folder / "spark-defaults.conf"
    key, added = "spark.driver.extraClassPath", f"{parts.component_folder(component)}/*"
    lines = [
        f"{line}:{added}" if line.startswith(key) else line
        for line in file.read_text().splitlines()
    ]
    file.write_text("\n".join(lines) + "\n")


def add_aws_if_wanted(request: pytest.FixtureRequest, home: Home) -> None:
    """Let the home's Spark see Iceberg's AWS bundle, where a test of this session needs it."""
    if any(item.get_closest_marker("aws") for item in request.session.items):
        add_to_class_path(home.spark_conf, "aws")


@pytest.fixture(scope="session")
def home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Home]:
    """The session's sandbox, in a path with a blank; this process's Spark opens its lake."""
    made = make_home(tmp_path_factory.mktemp("a home") / "sand box")
    bring_spark(made)
    add_aws_if_wanted(request, made)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SANDBOX_PORT_OFFSET", raising=False)
        patch.delenv("SPARK_HOME", raising=False)
        patch.setenv("SANDBOX_HOME", str(made.path))
        patch.setenv("SPARK_CONF_DIR", str(made.spark_conf))
        # Another worker's dbt writes there, too.
        patch.setenv("DBT_TARGET_PATH", str(made.path / "target"))
        yield made


@pytest.fixture(scope="session")
def spark(home: Home) -> Iterator[SparkSession]:
    """A Spark session on the lake of ``home``."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName("tests").getOrCreate()
    assert session.conf.get("spark.millrace.home") == str(home.path)
    yield session
    session.stop()


@contextmanager
def own_stack(path: Path, *wanted: str, secure: bool = False, **variables: str) -> Iterator[Stack]:
    """A sandbox for some tests alone, its services up; down again at the end."""
    with up(make_home(path), *wanted, secure=secure) as made:
        yield Stack(made.home, made.env | variables)


@contextmanager
def up(home: Home, *wanted: str, secure: bool = False) -> Iterator[Stack]:
    """Services of a sandbox, up; all of them down again at the end."""
    try:
        services.up(home, wanted, secure=secure)
        yield Stack(home, program_environment(home))
    finally:
        services.down(home)


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest, home: Home) -> Iterator[Stack]:
    """The services of ``home``."""
    with up(home) as found:
        # `up` writes Spark's settings.
        add_aws_if_wanted(request, home)
        yield found
