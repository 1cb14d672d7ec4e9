"""Catalogs of other kinds than the laptop's, for tests: REST and AWS Glue."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from sandbox.install import parts
from spark_ingest.lake.preflight import java_program, pyspark_folder
from tests.python.gate import Answer, Gate, Request, gate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REST_SERVER = Path(__file__).parents[1] / "java" / "RestCatalogServer.java"
# What Iceberg asks of Hadoop, and loggers.
_OF_PYSPARK = ("hadoop-client-*.jar", "slf4j-api-*.jar")


# Never shows one account from another.
_AWS_SETTINGS = {
    "aws.accessKeyId": "test",
    "aws.secretAccessKey": "test",
    "aws.region": "us-east-1",
}
_BUCKET = "lake"
_STALE = json.dumps(
    {
        "__type": "ConcurrentModificationException",
        "Message": "Update table failed due to concurrent modifications.",
    }
).encode()


def use(spark: SparkSession, **settings: str) -> SparkSession:
    """A session of the same Spark whose catalog ``lake`` is another one.

    Args:
        spark: The session to begin with.
        settings: Of the catalog, as in ``spark.sql.catalog.lake.…``; ``_`` stands for ``-``.
    """
    other = open_with(spark, **settings)
    # The catalog is made by the first statement, with the settings of that moment.
    other.sql("create namespace if not exists lake.bronze")
    return other


def open_with(spark: SparkSession, **settings: str) -> SparkSession:
    """As :func:`use`, of a catalog that may have no namespace."""
    other = spark.newSession()
    for name, value in settings.items():
        other.conf.set(f"spark.sql.catalog.lake.{name.replace('_', '-')}", value)
    return other


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """An Iceberg REST catalog, running; its address.

    Args:
        folder: Gets its database and the warehouse.
    """
    jars = [str(parts.component_folder("spark") / "*")]
    for pattern in _OF_PYSPARK:
        jars += map(str, (pyspark_folder() / "jars").glob(pattern))
    warehouse = folder / "warehouse"
    # fmt: off
    command = [
        str(java_program()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(jars),
        str(_REST_SERVER), f"jdbc:sqlite:{folder}/catalog.db?busy_timeout=30000",
        str(warehouse),
    ]
    # fmt: on
    # It ends with its input.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            said = server.stdout.readline().split()
            assert said[:1] == ["ready"], f"the REST catalog did not start: {said}"
            yield f"http://127.0.0.1:{said[1]}"
        finally:
            server.stdin.close()
            server.wait(30)


def is_rest_commit(request: Request) -> bool:
    """Whether a request commits to a table of a REST catalog."""
    return (
        request.method == "POST"
        and "/tables/" in request.path
        and (not request.path.endswith("/metrics"))
    )


def is_glue_commit(request: Request) -> bool:
    """Whether a request commits to a table of Glue."""
    return _glue_action(request) == "AWSGlue.UpdateTable"


@contextmanager
def glue(spark: SparkSession, strict: bool = True) -> Iterator[Gate]:
    """AWS Glue as moto plays it, behind a gate that refuses what Glue would.

    Args:
        spark: Whose JVM asks it: gets an identity of no meaning.
        strict: Refuse an update of a version that is not the newest; moto takes it.
    """
    # Half a second, for these tests alone.
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    # It shows of each request otherwise.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    jvm: Any = spark._jvm
    system = jvm.System
    before = {name: system.getProperty(name) for name in _AWS_SETTINGS}
    try:
        for name, value in _AWS_SETTINGS.items():
            system.setProperty(name, value)
        with gate(port) as made, ExitStack() as rules:
            if strict:
                update = _Versions(made).update
                rules.enter_context(made.treating(is_glue_commit, update))
            yield made
    finally:
        for name, value in before.items():
            if value is None:
                system.clearProperty(name)
            else:
                system.setProperty(name, value)
        server.stop()


def on_s3(address: str) -> dict[str, str]:
    """Settings of a catalog: Glue and S3 at that address, as :func:`use` takes them."""
    return {
        "type": "glue",
        "glue.endpoint": address,
        "client.region": _AWS_SETTINGS["aws.region"],
        "io_impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": address,
        "s3.path-style-access": "true",
        "warehouse": f"s3://{_BUCKET}/warehouse",
    }


def make_bucket(before: Gate) -> None:
    """Create the bucket of :func:`on_s3`."""
    httpx2.put(f"{before.service}/{_BUCKET}").raise_for_status()


def throttled(request: Request) -> Answer:
    """The response of S3 or Glue to too many requests."""
    if _glue_action(request):
        body = json.dumps({"__type": "ThrottlingException", "Message": "Rate exceeded"})
        return Answer(400, {"Content-Type": "application/x-amz-json-1.1"}, body.encode())
    error = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate</Message></Error>"
    return Answer(503, {"Content-Type": "application/xml"}, error.encode())


class _Versions:
    """Lets an update through where it is of the table's newest version, as Glue does."""

    def __init__(self, before: Gate) -> None:
        self._gate = before
        self._updating = threading.Lock()

    def update(self, request: Request) -> Answer:
        asked = json.loads(request.body)
        known = {"DatabaseName": asked["DatabaseName"], "Name": asked["TableInput"]["Name"]}
        look = Request(
            "POST",
            request.path,
            {**_without_action(request), "X-Amz-Target": "AWSGlue.GetTable"},
            json.dumps(known).encode(),
        )
        with self._updating:
            newest = json.loads(self._gate.pass_on(look).body)["Table"]["VersionId"]
            if asked.get("VersionId") not in {None, newest}:
                return Answer(400, {"Content-Type": "application/x-amz-json-1.1"}, _STALE)
            return self._gate.pass_on(request)


def _glue_action(request: Request) -> str:
    for name, value in request.headers.items():
        if name.lower() == "x-amz-target":
            return value
    return ""


def _without_action(request: Request) -> dict[str, str]:
    return {k: v for k, v in request.headers.items() if k.lower() != "x-amz-target"}


def port_of(address: str) -> int:
    """The port of an address."""
    port = urlsplit(address).port
    assert port is not None
    return port
