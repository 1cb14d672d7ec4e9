"""Schema ids of a stream in the sandbox's registry."""

from __future__ import annotations

import json
from base64 import b64encode
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from sandbox.services.security import PRODUCER, password, trust
from sandbox.settings import Home
from sandbox.streams import Stream
from spark_ingest.errors import ConfigurationError, ServiceUnavailable

_ANSWER_SECONDS = 8.0
_CONTENT = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


class _RefusedError(Exception):
    """The registry returned an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def schema_ids(home: Home, stream: Stream) -> tuple[int, int]:
    """The ids of a stream's key and value schema.

    A missing schema is registered, with compatibility BACKWARD.

    Raises:
        ServiceUnavailable: The registry is down.
        ConfigurationError: The registry rejects a schema.
    """
    subjects = (
        (stream.key_subject, stream.key_schema),
        (stream.value_subject, stream.value_schema),
    )
    key_id, value_id = (_schema_id(home, subject, schema) for subject, schema in subjects)
    return key_id, value_id


def registered_schema(home: Home, subject: str) -> dict[str, Any] | None:
    """The latest Avro schema of a subject; None if there is no such subject.

    Raises:
        ServiceUnavailable: The registry is down.
        ConfigurationError: It does not return the schema, or the schema is a union.
    """
    try:
        found = _ask(home, "GET", f"/subjects/{subject}/versions/latest")
    except _RefusedError as refused:
        if refused.status == HTTPStatus.NOT_FOUND:
            return None
        raise ConfigurationError(
            f"the schema registry does not give the schema of {subject}: {refused}"
        ) from refused
    except (OSError, HTTPException, ValueError) as error:
        raise _no_registry(home, error) from error
    schema = json.loads(found["schema"])
    if isinstance(schema, str):
        schema = {"type": schema}
    if not isinstance(schema, dict):
        raise ConfigurationError(
            f"the latest schema of {subject} is a union, not a record: use another topic"
        )
    return schema


def _no_registry(home: Home, error: Exception) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"no schema registry answers at {home.registry_url} ({error}); start it with `sandbox up`"
    )


def _schema_id(home: Home, subject: str, schema: dict[str, Any]) -> int:
    body = {"schema": json.dumps(schema), "schemaType": "AVRO"}
    try:
        try:
            found = _ask(home, "POST", f"/subjects/{subject}", body)
        except _RefusedError as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            found = _ask(home, "POST", f"/subjects/{subject}/versions", body)
            _ask(home, "PUT", f"/config/{subject}", {"compatibility": "BACKWARD"})
    except _RefusedError as refused:
        raise ConfigurationError(
            f"the schema registry refuses the schema of subject {subject}: {refused};"
            " compare its .avsc with the versions there"
        ) from refused
    except (OSError, HTTPException, ValueError) as error:
        raise _no_registry(home, error) from error
    return int(found["id"])


def _ask(home: Home, method: str, path: str, body: dict[str, str] | None = None) -> dict[str, Any]:
    address = urlsplit(home.registry_url)
    # Not urllib, which would use a proxy from the environment for 127.0.0.1.
    host, port = address.hostname or "", address.port
    headers = dict(_CONTENT)
    connection: HTTPConnection
    if home.secure:
        # The producer must be allowed to register its schemas.
        login = f"{PRODUCER}:{password(home, PRODUCER)}"
        headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        connection = HTTPSConnection(host, port, timeout=_ANSWER_SECONDS, context=trust(home))
    else:
        connection = HTTPConnection(host, port, timeout=_ANSWER_SECONDS)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, address.path + path, sent, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status != HTTPStatus.OK:
        raise _RefusedError(answer.status, _message(answer.status, text))
    read: dict[str, Any] = json.loads(text)
    return read


def _message(status: int, text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}"
