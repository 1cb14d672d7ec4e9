"""What `sandbox` prints and how it ends, without any service."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandbox import cli
from sandbox.services import stack
from sandbox.settings import Home, load_home, save_settings
from spark_ingest.errors import ConfigurationError
from tests.python.programs import ran

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A sandbox in a folder whose name needs quoting."""
    path = tmp_path / "it's a home"
    monkeypatch.setenv("SANDBOX_HOME", str(path))
    monkeypatch.delenv("SANDBOX_PORT_OFFSET", raising=False)
    return load_home()


@pytest.fixture
def sandbox(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """`sandbox` and its words in this process: a program takes half a second to start."""
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["sandbox", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        code = ended.value.code or 0
        assert isinstance(code, int)
        return subprocess.CompletedProcess(arguments, code, captured.out, captured.err)

    yield run
    signal.signal(signal.SIGTERM, before)


def test_env_survives_a_shell(home: Home) -> None:
    printed = ran([str(Path(sys.executable).parent / "sandbox"), "env"], check=True).stdout

    script = f'{printed}\nprintf "%s|%s" "$SANDBOX_HOME" "$KAFKA_BOOTSTRAP_SERVERS"'
    shell = ran(["sh", "-c", script], check=True)

    assert shell.stdout == f"{home.path}|127.0.0.1:19092"


def test_status_of_a_sandbox_that_never_ran(home: Home, sandbox: Run) -> None:
    done = sandbox("status")

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["stopped", "kafka"],
        ["stopped", "registry"],
        ["stopped", "redshift"],
        ["stopped", "thrift"],
        ["stopped", "postgres"],
        ["stopped", "mariadb"],
        ["stopped", "connect"],
        ["stopped", "s3"],
        ["stopped", "spark-cluster"],
    ]
    assert not home.path.exists()


def test_down_of_a_sandbox_that_never_ran_is_fine(home: Home, sandbox: Run) -> None:
    done = sandbox("down")

    assert (done.returncode, done.stdout) == (0, "nothing was running\n")
    assert not home.path.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("up", "kafak"), "there is no service 'kafak'; known: kafka, registry"),
        (("up", "--port", "kafka"), "--port kafka: write it as kafka=29092"),
        (("up", "--port", "broker=29092"), "there is no port named 'broker'"),
        (("logs", "kafka"), "nothing has run yet: `sandbox up`"),
        (("logs", "../settings"), "no log of '../settings'"),
        (("reset",), "sandbox reset --yes"),
        (("parts", "sparc"), "there is no component 'sparc'"),
        (("sql", "  ; "), "no statement"),
    ],
)
def test_wrong_use_is_one_line_on_standard_error_and_exit_2(
    sandbox: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = sandbox(*arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_command_says_what_it_does() -> None:
    runner = CliRunner()
    listed = runner.invoke(cli.app, ["--help"]).stdout

    for command in ("up", "down", "status", "logs", "reset", "env", "doctor", "sql", "parts"):
        assert f"│ {command} " in listed
        assert "Usage: " in runner.invoke(cli.app, [command, "--help"]).stdout


def test_logs_shows_the_last_lines(home: Home, sandbox: Run) -> None:
    home.logs.mkdir(parents=True)
    lines = [f"line {number} [x] é" for number in range(20_000)]
    (home.logs / "kafka.log").write_text("\n".join(lines) + "\n")

    assert sandbox("logs", "kafka", "-n", "3").stdout.splitlines() == lines[-3:]
    assert sandbox("logs", "kafka", "-n", "0").stdout == ""
    assert sandbox("logs", "kafka", "-n", "30000").stdout.splitlines() == lines


def test_reset_removes_state_and_leaves_foreign_files(home: Home, sandbox: Run) -> None:
    save_settings(home)
    for folder in (home.services / "kafka" / "data", home.lake / "warehouse", home.logs):
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")
    (home.path / "notes.txt").write_text("mine")

    assert sandbox("reset", "--yes").returncode == 0

    left = {str(path.relative_to(home.path)) for path in home.path.rglob("*")}
    assert left == {"settings.toml", "notes.txt", "lake", "lock"}


def test_a_port_option_keeps_the_other_choices(home: Home) -> None:
    first = cli.with_port_options(home, ["kafka=29092"])
    save_settings(first)

    second = cli.with_port_options(load_home(), ["registry=28081"])

    assert second.ports == {
        "kafka": 29092,
        "kafka-controller": 19093,
        "kafka-certificates": 19094,
        "registry": 28081,
        "redshift": 15439,
        "redshift-postgres": 15432,
        "redshift-lake": 15440,
        "thrift": 10000,
        "postgres": 15433,
        "mariadb": 13306,
        "connect": 18083,
        "s3": 15000,
        "spark-cluster": 17077,
        "spark-cluster-ui": 17080,
    }


def test_the_exports_for_a_cluster_leave_out_the_local_spark(sandbox: Run) -> None:
    printed = sandbox("env", "--cluster").stdout
    assert printed.startswith("unset SPARK_CONF_DIR\n")
    assert "export SPARK_CONF_DIR" not in printed
    assert "export SPARK_MASTER_URL=spark://127.0.0.1:" in printed
    assert "export AWS_ENDPOINT_URL=http://127.0.0.1:" in printed
    assert "AWS" not in sandbox("env").stdout


def test_services_are_chosen_in_starting_order() -> None:
    assert [each.name for each in stack.chosen(["registry", "kafka"])] == ["kafka", "registry"]
    assert [each.name for each in stack.chosen([])] == [
        "kafka",
        "registry",
        "redshift",
        "thrift",
        "postgres",
        "mariadb",
        "connect",
        "s3",
        "spark-cluster",
    ]
    assert [each.name for each in stack.chosen(["cdc", "kafka"])] == [
        "kafka",
        "postgres",
        "mariadb",
        "connect",
    ]
    with pytest.raises(ConfigurationError, match="no service 'snowflake'"):
        stack.chosen(["kafka", "snowflake"])
