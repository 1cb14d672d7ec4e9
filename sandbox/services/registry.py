"""Apicurio Registry, used through its Confluent-compatible API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from sandbox.install.parts import component_folder
from sandbox.services.java_programs import properties_text
from sandbox.services.security import (
    ADMIN,
    INGEST,
    USERS,
    password,
    registry_properties,
    trust,
    write_secret,
)
from sandbox.services.service import Service
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable
from spark_ingest.lake.preflight import java_program

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

_SECURE_FILE = "secure.properties"
_WRITER = "writer"


def client(home: Home) -> SchemaRegistryClient:
    """A client for the sandbox's registry."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient(registry_properties(home, ADMIN))


def _prepare(home: Home) -> None:
    folder = REGISTRY.folder(home)
    # H2 ends its URL's file name at a semicolon.
    if ";" in str(folder):
        raise ConfigurationError(
            f"SANDBOX_HOME is {home.path}: the registry takes no semicolon in the path of its data"
        )
    (folder / "data").mkdir(parents=True, exist_ok=True)
    if home.secure:
        write_secret(folder / _SECURE_FILE, _secure_settings(home))


def _secure_settings(home: Home) -> str:
    """TLS, users and roles: in a file, because command lines are public."""
    settings = {
        "quarkus.http.insecure-requests": "disabled",
        "quarkus.http.ssl-port": str(home.ports["registry"]),
        "quarkus.http.ssl.certificate.files": str(home.security / "server.pem"),
        "quarkus.http.ssl.certificate.key-files": str(home.security / "server.key"),
        "quarkus.http.auth.basic": "true",
        "quarkus.security.users.embedded.enabled": "true",
        "quarkus.security.users.embedded.plain-text": "true",
        "quarkus.http.auth.policy.writers.roles-allowed": _WRITER,
        "quarkus.http.auth.permission.read.paths": "/apis/*",
        "quarkus.http.auth.permission.read.methods": "GET,HEAD",
        "quarkus.http.auth.permission.read.policy": "authenticated",
        "quarkus.http.auth.permission.write.paths": "/apis/*",
        "quarkus.http.auth.permission.write.methods": "POST,PUT,DELETE,PATCH",
        "quarkus.http.auth.permission.write.policy": "writers",
    }
    for user in USERS:
        role = "reader" if user == INGEST else _WRITER
        settings[f"quarkus.security.users.embedded.users.{user}"] = password(home, user)
        settings[f"quarkus.security.users.embedded.roles.{user}"] = role
    return properties_text(settings)


def _command(home: Home) -> list[str]:
    runners = sorted(component_folder("registry").glob("apicurio-registry-app-*-runner.jar"))
    if not runners:
        raise ConfigurationError("the part registry is not complete: `sandbox parts --check`")
    data = REGISTRY.folder(home) / "data" / "registry"
    options = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.banner.enabled": "false",
        "quarkus.http.access-log.enabled": "false",
        "quarkus.log.console.format": "%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %p %c{2.} %s%e%n",
        "apicurio.datasource.url": f"jdbc:h2:file:{data}",
        "apicurio.datasource.jdbc.initial-size": "2",
        "apicurio.datasource.jdbc.min-size": "2",
        "apicurio.datasource.jdbc.max-size": "10",
    }
    if home.secure:
        file = REGISTRY.folder(home) / _SECURE_FILE
        options["quarkus.config.locations"] = file.as_uri()
    else:
        options["quarkus.http.port"] = str(home.ports["registry"])
    return [
        str(java_program()),
        "-Xmx256m",
        "-XX:+UseSerialGC",
        # C1 only: for its few requests C2 does not pay off, and takes half of the startup time.
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-Duser.timezone=UTC",
        *(f"-D{key}={value}" for key, value in options.items()),
        "-jar",
        str(runners[-1]),
    ]


def _is_ready(home: Home) -> bool:
    try:
        scheme = "https" if home.secure else "http"
        url = f"{scheme}://{REGISTRY.address(home)}/health/ready"
        # Do not use a proxy from the environment for 127.0.0.1.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust(home))
        )
        with opener.open(url, timeout=5) as answer:
            return bool(json.load(answer).get("status") == "UP")
    except (urllib.error.URLError, OSError, ValueError):
        return False


def missing_subjects(home: Home) -> list[str]:
    """Subjects of the streams that do not exist in the registry.

    Raises:
        ServiceUnavailable: The registry is down.
    """
    from sandbox.streams import STREAMS

    if not _is_ready(home):
        raise ServiceUnavailable(
            f"the schema registry at {home.registry_url} does not answer: `sandbox up`"
        )
    present = set(client(home).get_subjects())
    wanted = [subject for s in STREAMS.values() for subject in (s.value_subject, s.key_subject)]
    return sorted(set(wanted) - present)


def _settle(home: Home) -> list[str]:
    """Set the default compatibility and register the streams' schemas."""
    from confluent_kafka.schema_registry import ConfigCompatibilityLevel, Schema, ServerConfig
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    from sandbox.streams import STREAMS

    registry = client(home)
    absent = set(missing_subjects(home))
    # A new registry has compatibility NONE; a value set by the user is kept.
    if registry.get_config().compatibility_level == "NONE":
        level = ConfigCompatibilityLevel.BACKWARD
        registry.set_config(config=ServerConfig(compatibility=level))
    for stream in STREAMS.values():
        schemas = (
            (stream.value_subject, stream.value_schema),
            (stream.key_subject, stream.key_schema),
        )
        for subject, schema in schemas:
            try:
                registry.register_schema(subject, Schema(json.dumps(schema), "AVRO"))
            except SchemaRegistryError as error:
                raise MillraceError(
                    f"the registry refuses the schema of {subject}: {error.error_message}"
                ) from error
    return [f"subject {subject}" for subject in sorted(absent)]


REGISTRY = Service(
    name="registry",
    title="Apicurio schema registry",
    parts=("registry",),
    ports=("registry",),
    prepare=_prepare,
    command=_command,
    is_ready=_is_ready,
    settle=_settle,
)
