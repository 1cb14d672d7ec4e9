"""A secure sandbox: who is let in, who is reported why not, and where no secret shows.

Fails when a permitted user is refused, a refusal does not name its key, or a secret shows.
"""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AclOperation, NewTopic

from sandbox.services import stack as services
from sandbox.services.certificates import Authority, Signed
from sandbox.services.kafka import admin
from sandbox.services.kafka_listeners import permissions
from sandbox.services.security import CONTROLLER, USERS, authority_of, password
from sandbox.settings import PROJECT
from spark_ingest.cli import main
from spark_ingest.connect import broker
from spark_ingest.connect.broker import Broker, reader_options
from spark_ingest.connect.profile import Connections, load_connections
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.errors import ConfigurationError, ServiceUnavailable
from spark_ingest.lake.session import hide_secrets
from tests.python.conftest import Stack, make_home, program_environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "pagila.sales.avro"
CLOSED = "test.closed"
RECORDS = 200
SHOWN_IN = "profiles/ingest.yml"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A secure sandbox with records of one stream, and a topic that nobody may see."""
    home = make_home(tmp_path_factory.mktemp("a secure home") / "sand box")
    found = Stack(home, program_environment(home))
    try:
        services.up(home, secure=True)
        found = Stack(home, program_environment(home))
        client = admin(home)
        client.create_topics([NewTopic(CLOSED, 1, 1)])[CLOSED].result()
        found.run("sandbox", "produce", "pagila", "--count", str(RECORDS))
        yield found
    finally:
        services.down(home)


@pytest.fixture(scope="module")
def connections(secure: Stack) -> Connections:
    """What the profile's target `secure` says."""
    return load_connections(PROJECT / "profiles" / "ingest.yml", None, dict(secure.env))


@pytest.fixture(scope="module")
def files(secure: Stack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Certificates and keys that are good, expired, and of another authority."""
    folder = tmp_path_factory.mktemp("certificates")
    ours, other = authority_of(secure.home), Authority.made("another")
    pairs = {
        "good": ours.client("ingest"),
        "expired": ours.client("ingest", timedelta(days=-2)),
        "foreign": other.client("ingest"),
    }
    made = {}
    for name, pair in {**pairs, "authority": other.signed}.items():
        made[name] = str(folder / f"{name}.pem")
        made[f"{name} key"] = str(folder / f"{name}.key")
        Path(made[name]).write_bytes(pair.certificate)
        Path(made[f"{name} key"]).write_bytes(pair.key)
    return made


def changed(connections: Connections, changes: Mapping[str, str | None]) -> Connections:
    """Other Kafka properties; None leaves one out."""
    kept = {**connections.kafka, **changes}
    kafka = {key: value for key, value in kept.items() if value is not None}
    return connections.model_copy(update={"kafka": kafka})


@contextmanager
def listening(handle: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server of our own; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    caller, _ = server.accept()
                except OSError:
                    return
                with caller, suppress(OSError):
                    handle(caller)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def tls(signed: Signed, folder: Path) -> Callable[[socket.socket], None]:
    """Shakes hands with this certificate, then listens."""
    file = folder / "server.pem"
    file.write_bytes(signed.key + signed.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    def handle(caller: socket.socket) -> None:
        with context.wrap_socket(caller, server_side=True) as channel:
            channel.recv(100)

    return handle


def refusal(connections: Connections) -> str:
    with pytest.raises(ConfigurationError) as caught:
        Broker(connections).existing_topic(TOPIC, "pagila.sales")
    return one_line(caught.value, connections)


def registry_refusal(connections: Connections, **changes: object) -> str:
    registry = connections.registry.model_copy(update=changes)
    asked = connections.model_copy(update={"registry": registry})
    with pytest.raises(ConfigurationError) as caught:
        SchemaRegistry(asked).subject_schemas(f"{TOPIC}-value")
    return one_line(caught.value, asked)


def one_line(error: ConfigurationError, connections: Connections) -> str:
    text = str(error)
    assert error.exit_code == 2
    assert "\n" not in text
    assert SHOWN_IN in text
    assert connections.kafka.get("sasl.password", "unset") not in text
    return text


SECRETS_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def test_secrets_of_the_sandbox_are_its_owners_alone(secure: Stack) -> None:
    home = secure.home
    secrets = [password(home, user) for user in (*USERS, CONTROLLER)]
    assert len(set(secrets)) == len(secrets)
    assert home.security.stat().st_mode & SECRETS_OF_OTHERS == 0
    holders = []
    for path in home.path.rglob("*"):
        # Kafka's empty indexes are large.
        if path.is_file() and path.stat().st_size < 1_000_000:
            text = path.read_text("latin-1")
            holders += [path for secret in secrets if secret in text]
    assert len(set(holders)) > len(secrets)
    for path in holders:
        assert path.stat().st_mode & SECRETS_OF_OTHERS == 0, path
    assert not any(shown_in_processes(secret) for secret in secrets)
    assert not any(secret in home.env_file.read_text() for secret in secrets)
    reported = secure.run("sandbox", "status").stdout
    assert f"secure   certificates and passwords in {home.security}" in reported


def shown_in_processes(secret: str) -> list[str]:
    """Commands of this machine in which a secret stands."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
            if secret in command:
                found.append(command)
    return found


@pytest.mark.parametrize("way", ["as the profile has it", "PLAIN", "certificate"])
def test_each_way_in_leads_in(
    way: str, connections: Connections, files: dict[str, str], secure: Stack
) -> None:
    ways: dict[str, dict[str, str | None]] = {
        "as the profile has it": {},
        "PLAIN": {"sasl.mechanism": "PLAIN"},
        "certificate": by_certificate(secure, files, "good"),
    }
    broker = Broker(changed(connections, ways[way]))
    topic = broker.existing_topic(TOPIC, "pagila.sales")
    assert sum(broker.end_offsets(topic).values()) == RECORDS
    ends = broker.end_offsets(topic)
    filled = next(number for number, end in ends.items() if end)
    assert broker.records_in(TOPIC, filled, [(0, 1)]) == [(0, 1)]


def by_certificate(secure: Stack, files: dict[str, str], name: str) -> dict[str, str | None]:
    port = secure.home.ports["kafka-certificates"]
    return {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SSL",
        "sasl.mechanism": None,
        "sasl.username": None,
        "sasl.password": None,
        "ssl.certificate.location": files[name],
        "ssl.key.location": files[f"{name} key"],
    }


def test_a_wrong_password_is_reported(connections: Connections) -> None:
    for mechanism in ("SCRAM-SHA-512", "PLAIN"):
        wrong: dict[str, str | None] = {
            "sasl.password": "planted-wrong-one",
            "sasl.mechanism": mechanism,
        }
        reported = refusal(changed(connections, wrong))
        assert "rejects user ingest" in reported
        assert "(sasl.password under kafka in target secure" in reported


def test_a_mechanism_that_the_broker_lacks_is_reported(connections: Connections) -> None:
    reported = refusal(changed(connections, {"sasl.mechanism": "SCRAM-SHA-256"}))
    assert "does not support SCRAM-SHA-256" in reported
    assert "(sasl.mechanism under kafka" in reported


def test_a_missing_permission_is_reported(connections: Connections, secure: Stack) -> None:
    broker = Broker(connections)
    with pytest.raises(ConfigurationError) as nothing:
        broker.existing_topic(CLOSED, "test.closed")
    said = one_line(nothing.value, connections)
    assert f"user ingest (kafka.sasl.username of {SHOWN_IN}) has no permission" in said
    assert f"on topic {CLOSED}" in said
    # Seeing is not reading: found out before Spark is.
    seeing = [
        binding
        for binding in permissions(written=[], read=[CLOSED])
        if binding.operation is AclOperation.DESCRIBE
    ]
    client = admin(secure.home)
    for future in client.create_acls(seeing).values():
        future.result()
    with pytest.raises(ConfigurationError, match=r"add ACLs that allow READ$"):
        broker.existing_topic(CLOSED, "test.closed")


def test_plain_text_to_a_port_of_tls_is_reported(connections: Connections) -> None:
    nothing: dict[str, str | None] = {key: None for key in connections.kafka if key.startswith("s")}
    reported = refusal(changed(connections, nothing))
    assert "requires TLS, but the client uses plain text: set it to SASL_SSL" in reported
    assert "(security.protocol under kafka" in reported
    assert "`--target secure`" in reported


def test_tls_to_a_port_of_plain_text_is_reported(connections: Connections, stack: Stack) -> None:
    servers: dict[str, str | None] = {"bootstrap.servers": stack.home.bootstrap_servers}
    reported = refusal(changed(connections, servers))
    assert "does not use TLS: set it to SASL_PLAINTEXT" in reported
    assert "(security.protocol under kafka" in reported


def test_a_listener_that_wants_a_user_is_distinguished_from_one_that_wants_none(
    connections: Connections, secure: Stack, files: dict[str, str]
) -> None:
    port = secure.home.ports["kafka-certificates"]
    without_user = by_certificate(secure, files, "good") | {
        "bootstrap.servers": secure.home.bootstrap_servers
    }
    assert "requires authentication" in refusal(changed(connections, without_user))
    with_user: dict[str, str | None] = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "ssl.certificate.location": files["good"],
        "ssl.key.location": files["good key"],
    }
    assert "does not use SASL" in refusal(changed(connections, with_user))


def test_what_a_broker_has_against_a_certificate_is_reported(
    connections: Connections, secure: Stack, files: dict[str, str]
) -> None:
    def reported(name: str) -> str:
        found = refusal(changed(connections, by_certificate(secure, files, name)))
        assert "(ssl.certificate.location under kafka" in found
        return found

    assert "expired on" in reported("expired")
    assert "does not trust the certificate in" in reported("foreign")
    absent = by_certificate(secure, files, "good") | {
        "ssl.certificate.location": None,
        "ssl.key.location": None,
    }
    assert "requires a client certificate" in refusal(changed(connections, absent))


def test_what_we_have_against_a_certificate_is_reported(
    connections: Connections, secure: Stack, files: dict[str, str], tmp_path: Path
) -> None:
    ours = authority_of(secure.home)
    wrong = refusal(changed(connections, {"ssl.ca.location": files["authority"]}))
    assert f"is not signed by the CA in {files['authority']}" in wrong
    assert "(ssl.ca.location under kafka" in wrong
    unknown = refusal(changed(connections, {"ssl.ca.location": None}))
    assert "is not signed by a CA that this machine trusts" in unknown

    expired = ours.server("old", "127.0.0.1", lifetime=timedelta(days=-2))
    with listening(tls(expired, tmp_path)) as address:
        reported = refusal(changed(connections, {"bootstrap.servers": address}))
        assert "has expired" in reported
        url = registry_refusal(connections, url=f"https://{address}/")
        assert "has expired" in url
    elsewhere = ours.server("elsewhere", "kafka.example")
    with listening(tls(elsewhere, tmp_path)) as address:
        reported = refusal(changed(connections, {"bootstrap.servers": address}))
        assert "is for another name than 127.0.0.1" in reported
        assert "(bootstrap.servers under kafka" in reported


def test_a_broker_that_is_away_is_no_mistake(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "_TIMEOUT", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    away = changed(connections, {"bootstrap.servers": f"127.0.0.1:{port}"})
    with pytest.raises(ServiceUnavailable, match="Connection refused"):
        Broker(away).topic(TOPIC)


def test_what_the_registry_has_against_us_is_reported(
    connections: Connections, files: dict[str, str]
) -> None:
    assert SchemaRegistry(connections).subject_schemas(f"{TOPIC}-value")

    wrong = registry_refusal(connections, password="planted-wrong-one")
    assert "login of user ingest failed" in wrong
    assert "(username and password under registry in target secure" in wrong
    assert "planted" not in wrong
    nobody = registry_refusal(connections, username=None, password=None)
    assert "login of a client without a user failed" in nobody
    trust = registry_refusal(connections, tls={"ssl.ca.location": files["authority"]})
    assert "is not signed by" in trust
    url = connections.registry.url
    plain = registry_refusal(connections, url=url.replace("https", "http"), tls={})
    assert "use https://" in plain


def test_no_secret_shows_in_a_reader_of_spark(
    spark: SparkSession,
    connections: Connections,
    secure: Stack,
    files: dict[str, str],
    tmp_path: Path,
) -> None:
    hide_secrets(spark)
    key = Path(files["good key"]).read_text().splitlines()[1]
    plain: dict[str, str | None] = {"sasl.mechanism": "PLAIN"}
    ways = [(plain, password(secure.home, "ingest")), (by_certificate(secure, files, "good"), key)]
    for number, (changes, secret) in enumerate(ways):
        used = changed(connections, changes)
        topic = Broker(used).existing_topic(TOPIC, "pagila.sales")
        options = reader_options(used, topic, {}, RECORDS)
        # It is there to be shown.
        assert any(secret in value for value in options.values())
        records = spark.readStream.format("kafka").options(**options).load()
        counted: list[int] = []

        def count(batch: DataFrame, _: int, into: list[int] = counted) -> None:
            into.append(batch.count())

        checkpoint = tmp_path / f"checkpoint {number}"
        query = (
            records.writeStream.foreachBatch(count)
            .option("checkpointLocation", f"file:{checkpoint}")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert sum(counted) == RECORDS
        shown = StringIO()
        with redirect_stdout(shown):
            records.explain(True)
            query.explain(True)
        assert "StreamingRelation" in shown.getvalue()
        assert secret not in shown.getvalue()
        assert secret not in json.dumps([p.json for p in query.recentProgress])
        written = [path for path in checkpoint.rglob("*") if path.is_file()]
        assert written
        assert [p for p in written if secret in p.read_text("latin-1")] == []


@pytest.mark.nightly
def test_ingest_over_tls_shows_no_secret_at_its_most_talkative(
    secure: Stack, tmp_path: Path
) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(secure.home.spark_conf, conf)
    events = tmp_path / "events"
    events.mkdir()
    with (conf / "spark-defaults.conf").open("a") as settings:
        settings.write(
            "spark.eventLog.enabled true\nspark.eventLog.compress false\n"
            f"spark.eventLog.dir file:{events}\n"
        )
    log = (conf / "log4j2.properties").read_text()
    loud = log.replace("level = error", "level = info").replace("level = off", "level = info")
    (conf / "log4j2.properties").write_text(loud)
    talkative = Stack(secure.home, {**secure.env, "SPARK_CONF_DIR": str(conf)})
    secret = password(secure.home, "ingest")
    assert secret not in "".join(f"{k}={v}\n" for k, v in talkative.env.items())
    seen: list[str] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            seen.extend(shown_in_processes(secret))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        done = talkative.run("spark-ingest", "run", "--once", "pagila")
    finally:
        ended.set()
        watcher.join()

    lines = [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]
    batches = [line for line in lines if line.get("event") == "batch"]
    assert sum(batch["rows"] for batch in batches) == RECORDS
    assert seen == []
    # Kafka's client shows all of its settings at this level.
    assert "sasl.jaas.config = [hidden]" in done.stderr
    assert secret not in done.stdout + done.stderr
    written = [path for path in events.rglob("*") if path.is_file()]
    assert written
    assert [p for p in written if secret in p.read_text("latin-1")] == []


def test_a_wrong_password_ends_the_command_with_one_line_and_2(
    secure: Stack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = {
        "source_name": "pagila",
        "name": "sales",
        "schema": "bronze",
        "identifier": "pagila__sales",
        "description": "Sales.",
        "columns": {},
        "tags": [],
        "original_file_path": "none",
        "config": {"meta": {"ingest": {"topic": TOPIC}}},
    }
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"sources": {"sales": node}}))
    profile = tmp_path / "ingest.yml"
    text = (PROJECT / "profiles" / "ingest.yml").read_text()
    profile.write_text(text.replace("password: ${file:", "password: planted${file:"))
    options = ["--manifest", str(manifest), "--profile", str(profile)]
    monkeypatch.setattr(sys, "argv", ["spark-ingest", *options, "run", "--once"])
    for name, value in secure.home.environment().items():
        monkeypatch.setenv(name, value)

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("spark-ingest: Kafka at")
    assert "rejects user ingest" in shown.err
    assert len(shown.err.splitlines()) == 1
    assert "planted" not in shown.err + shown.out


@pytest.mark.long
def test_the_demo_runs_over_a_secure_sandbox(tmp_path: Path) -> None:
    home = make_home(tmp_path / "a secure demo" / "sand box")
    fresh = Stack(home, program_environment(home))
    done = fresh.run("sandbox", "demo", "--secure", "--count", "500")
    assert "all good" in done.stdout
    assert home.secure
