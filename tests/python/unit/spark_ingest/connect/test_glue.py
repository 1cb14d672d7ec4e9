"""Schemas of AWS Glue Schema Registry, as moto emulates it.

Fails when a version is missing, or has another id than its records, or an error misleads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch
from uuid import UUID

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError
from moto import mock_aws

from spark_ingest.connect.profile import Connections, Registry
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.errors import ConfigurationError, ServiceUnavailable

REGION, NAME = "eu-west-1", "events"
# The call of a request, which some tests replace.
CALL = BaseClient._make_api_call
ARN = f"arn:aws:glue:{REGION}:123456789012:registry/{NAME}"


def record(*fields: str) -> str:
    kinds = [{"name": name, "type": ["null", "int"], "default": None} for name in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": kinds})


def registry(url: str = ARN) -> SchemaRegistry:
    kafka = {"bootstrap.servers": "a:1"}
    return SchemaRegistry(Connections(name="x", kafka=kafka, registry=Registry(url=url)))


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        client = boto3.client("glue", region_name=REGION)
        client.create_registry(RegistryName=NAME)
        yield client


def create(glue: Any, name: str, definition: str, kind: str = "AVRO") -> UUID:
    made = glue.create_schema(
        RegistryId={"RegistryName": NAME}, SchemaName=name, DataFormat=kind,
        Compatibility="BACKWARD", SchemaDefinition=definition,
    )  # fmt: skip
    return UUID(made["SchemaVersionId"])


def test_each_version_has_the_beginning_of_its_uuid_as_id(glue: Any) -> None:
    first = create(glue, "orders", record("a"))
    schema_id = {"RegistryName": NAME, "SchemaName": "orders"}
    added = glue.register_schema_version(SchemaId=schema_id, SchemaDefinition=record("a", "b"))
    asked = registry()

    found = asked.subject_schemas("orders", "glue")

    uuids = (first, UUID(added["SchemaVersionId"]))
    ids = [int.from_bytes(uuid.bytes[:7], "big") for uuid in uuids]
    assert [writer.id for writer in found] == ids
    assert [json.dumps(writer.schema) for writer in found] == [record("a"), record("a", "b")]
    assert asked.schema(ids[1], "glue") == found[1]
    assert asked.schema(7, "glue") is None
    assert asked.subject_schemas("nothing", "glue") == []


def test_versions_are_fetched_once(glue: Any) -> None:
    create(glue, "orders", record("a"))
    asked = registry()
    with patch("botocore.client.BaseClient._make_api_call", autospec=True) as call:
        call.side_effect = CALL
        for _ in range(3):
            assert len(asked.subject_schemas("orders", "glue")) == 1
    names = [each.args[1] for each in call.call_args_list]
    assert names == ["GetSchema", "GetSchemaVersion", "GetSchema", "GetSchema"]


def test_a_schema_that_is_not_avro_has_a_problem(glue: Any) -> None:
    create(glue, "orders", '{"$schema": "http://json-schema.org/draft-07/schema#"}', "JSON")
    (found,) = registry().subject_schemas("orders", "glue")
    assert (found.schema, found.problem) == (None, "a JSON schema, not Avro")


def test_a_version_that_is_pending_is_asked_for_again(glue: Any) -> None:
    create(glue, "orders", record("a"))
    asked = registry()

    def pending(client: Any, action: str, request: Any) -> Any:
        return {**CALL(client, action, request), "Status": "PENDING"}

    with patch("botocore.client.BaseClient._make_api_call", pending):
        assert asked.subject_schemas("orders", "glue") == []
    assert len(asked.subject_schemas("orders", "glue")) == 1


def test_two_versions_that_begin_alike_are_refused(glue: Any) -> None:
    create(glue, "orders", record("a"))
    create(glue, "others", record("b"))

    def alike(client: Any, action: str, request: Any) -> Any:
        answer = CALL(client, action, request)
        if action == "GetSchemaVersion":
            end = answer["SchemaVersionId"][16:]
            answer["SchemaVersionId"] = f"01234567-89ab-cd{end}"
        return answer

    asked = registry()
    with patch("botocore.client.BaseClient._make_api_call", alike):
        asked.subject_schemas("orders", "glue")
        with pytest.raises(ConfigurationError, match="begin alike"):
            asked.subject_schemas("others", "glue")


def denied(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "GetSchema")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (denied("AccessDeniedException"), ConfigurationError, "needs glue:GetSchema and"),
        (denied("ThrottlingException"), ServiceUnavailable, "does not answer"),
        (NoCredentialsError(), ConfigurationError, "give the process an identity of AWS"),
        (ConnectTimeoutError(endpoint_url="x"), ServiceUnavailable, "does not answer"),
    ],
)
def test_an_error_names_the_registry_and_the_fix(
    glue: Any, error: Exception, kind: type[Exception], text: str
) -> None:
    with (
        patch("botocore.client.BaseClient._make_api_call", side_effect=error),
        pytest.raises(kind, match=f"{ARN}.*{text}"),
    ):
        registry().subject_schemas("orders", "glue")


def test_framing_and_registry_must_fit() -> None:
    with pytest.raises(ConfigurationError, match="only sources with framing: glue"):
        registry().subject_schemas("orders-value")
    with pytest.raises(ConfigurationError, match="give its ARN"):
        registry("http://127.0.0.1:1").subject_schemas("orders", "glue")
