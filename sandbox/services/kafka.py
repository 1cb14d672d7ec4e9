"""Kafka in KRaft mode: broker and controller in one process."""

from __future__ import annotations

import base64
import logging
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.processes.process import accepts
from sandbox.services.java_programs import java_command, properties_text
from sandbox.services.kafka_listeners import listeners, permissions, user_credentials
from sandbox.services.security import ADMIN, kafka_properties, write_secret
from sandbox.services.service import Service
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from sandbox.streams import Stream

# One broker: internal topics have one replica, and few partitions for a fast start.
_INTERNAL_TOPICS = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")


def admin(home: Home) -> AdminClient:
    """An admin client for the sandbox's broker, without log output."""
    from confluent_kafka.admin import AdminClient

    quiet = logging.getLogger("sandbox.kafka")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    return AdminClient({**kafka_properties(home, ADMIN), "socket.timeout.ms": 5000}, logger=quiet)


def _folder(home: Home) -> Path:
    return KAFKA.folder(home)


def _properties(home: Home, data: Path) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        **listeners(home),
        "log.dirs": str(data),
        "num.partitions": "4",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
    }
    for topic in _INTERNAL_TOPICS:
        settings[f"{topic}.replication.factor"] = "1"
        settings[f"{topic}.num.partitions"] = "4"
        if topic != "offsets.topic":
            settings[f"{topic}.min.isr"] = "1"
    return properties_text(settings)


def _prepare(home: Home) -> None:
    folder = _folder(home)
    if "," in str(folder):
        raise ConfigurationError(
            f"SANDBOX_HOME is {home.path}: Kafka takes no comma in the path of its data"
        )
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    write_secret(folder / "server.properties", _properties(home, data))
    if not (data / "meta.properties").exists():
        _format(home, data)


def _format(home: Home, data: Path) -> None:
    """Create the data folder atomically, so that a killed format leaves no partial folder."""
    new = data.with_name("data.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(data, ignore_errors=True)
    file = data.with_name("format.properties")
    write_secret(file, _properties(home, new))
    arguments = ["format", "--standalone", "-t", _cluster_id(), "-c", str(file)]
    if home.secure:
        for credential in user_credentials(home):
            arguments += ["--add-scram", credential]
    java, *options = java_command("kafka", "kafka.tools.StorageTool", *arguments, heap="128m")
    # Command lines are public: pass the arguments to Java in a file.
    command_line = data.with_name("format.arguments")
    write_secret(command_line, "\n".join(map(_java_quoted, options)) + "\n")
    done = subprocess.run([java, f"@{command_line}"], capture_output=True, text=True, check=False)
    command_line.unlink()
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["it says nothing"]
        raise MillraceError(f"Kafka cannot format {data}: {lines[-1]}")
    file.unlink()
    new.rename(data)


def _java_quoted(argument: str) -> str:
    """An argument, quoted for Java's argument files."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _cluster_id() -> str:
    """A Kafka UUID: 16 bytes in URL-safe Base64, without a leading hyphen."""
    text = "-"
    while text.startswith("-"):
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return text


def _command(home: Home) -> list[str]:
    file = _folder(home) / "server.properties"
    return java_command("kafka", "kafka.Kafka", str(file), heap="512m")


def _own_cluster_id(home: Home) -> str | None:
    try:
        lines = (_folder(home) / "data" / "meta.properties").read_text().splitlines()
    except OSError:
        return None
    return dict(line.split("=", 1) for line in lines if "=" in line).get("cluster.id")


def _is_ready(home: Home) -> bool:
    """Whether the broker responds, and has the cluster id of this sandbox."""
    if not accepts(home.ports["kafka"]):
        return False
    from confluent_kafka import KafkaException

    try:
        metadata = admin(home).list_topics(timeout=5)
    except KafkaException:
        return False
    return bool(metadata.brokers) and metadata.cluster_id == _own_cluster_id(home)


def missing_topics(home: Home) -> list[str]:
    """Topics of the streams that do not exist on the broker.

    Raises:
        ServiceUnavailable: The broker does not answer.
    """
    from sandbox.streams import STREAMS

    present = present_topics(home)
    return sorted({stream.topic for stream in STREAMS.values()} - present)


def present_topics(home: Home) -> set[str]:
    """The topics on the broker.

    Raises:
        ServiceUnavailable: It does not answer.
    """
    from confluent_kafka import KafkaException

    try:
        return set(admin(home).list_topics(timeout=10).topics)
    except KafkaException as error:
        raise ServiceUnavailable(
            f"the Kafka broker at {home.bootstrap_servers} does not answer: `sandbox up`"
        ) from error


def end_offsets(home: Home, topic: str) -> dict[int, int]:
    """The end offset of each partition.

    Raises:
        ServiceUnavailable: The broker does not answer, or has no such topic.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    client = Consumer({**kafka_properties(home, ADMIN), "group.id": "sandbox", "log_level": 0})
    try:
        found = client.list_topics(topic, timeout=10).topics[topic].partitions
        return {
            partition: client.get_watermark_offsets(TopicPartition(topic, partition), 10)[1]
            for partition in sorted(found)
        }
    except KafkaException as error:
        raise ServiceUnavailable(
            f"the Kafka broker at {home.bootstrap_servers} does not return the offsets of"
            f" {topic}: `sandbox doctor`"
        ) from error
    finally:
        client.close()


def _settle(home: Home) -> list[str]:
    """Create missing topics of the streams."""
    from sandbox.streams import STREAMS

    absent = set(missing_topics(home))
    if absent:
        create_topics(home, {one.topic: one.partitions for one in STREAMS.values()})
    _permit(home)
    return [f"topic {topic}" for topic in sorted(absent)]


def create_topic(home: Home, stream: Stream) -> None:
    """Create the topic of a user-defined stream if it does not exist.

    Raises:
        ServiceUnavailable: The broker does not answer.
        MillraceError: It cannot create the topic.
    """
    create_topics(home, {stream.topic: stream.partitions})
    _permit(home, stream.topic)


def create_topics(home: Home, partitions: Mapping[str, int]) -> None:
    """Create missing topics, with their number of partitions.

    Raises:
        ServiceUnavailable: The broker does not answer.
        MillraceError: It cannot create one of them.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.cimpl import NewTopic

    # No retention limit: replayed events may be years old, and captured rows may not change
    # for weeks.
    config = {"retention.ms": "-1", "cleanup.policy": "delete"}
    there = present_topics(home)
    topics = [
        NewTopic(topic, count, replication_factor=1, config=config)
        for topic, count in partitions.items()
        if topic not in there
    ]
    if not topics:
        return
    client = admin(home)  # must outlive its futures
    for topic, future in client.create_topics(topics, operation_timeout=30).items():
        try:
            future.result()
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise MillraceError(f"Kafka cannot create {topic}: {reason.str()}") from error


def _permit(home: Home, *further: str) -> None:
    """Create the ACLs of a secure sandbox for the streams' topics and further ones.

    Without the permission to describe a topic, a client cannot see that it does not exist: so
    the ingest user may also describe the topics of captured tables.
    """
    if not home.secure:
        return
    from confluent_kafka import KafkaException

    from sandbox.streams import STREAMS, declared_topics, published_topics
    from spark_ingest.publish.transactions import PROGRESS_TOPIC

    client = admin(home)  # must outlive its futures
    written = {*further, *(stream.topic for stream in STREAMS.values())}
    wanted = permissions(
        written, [*further, *declared_topics().values()], [PROGRESS_TOPIC, *published_topics()]
    )
    for binding, future in client.create_acls(wanted).items():
        try:
            future.result()
        except KafkaException as error:
            raise MillraceError(
                f"Kafka cannot permit {binding.principal} {binding.name}: {error.args[0].str()}"
            ) from error


KAFKA = Service(
    name="kafka",
    title="Kafka broker and controller",
    parts=("kafka",),
    ports=("kafka", "kafka-controller"),
    secure_ports=("kafka-certificates",),
    prepare=_prepare,
    command=_command,
    is_ready=_is_ready,
    settle=_settle,
)
