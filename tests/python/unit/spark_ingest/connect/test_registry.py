"""What a registry's answers mean."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from spark_ingest.connect.profile import Connections, Registry
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.errors import ConfigurationError, ServiceUnavailable
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.sources import IngestMeta, Stream


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], SchemaRegistry]:
    """Makes a registry whose client answers everything with one error."""

    def make(error: Exception) -> SchemaRegistry:
        def refuse(*_: object) -> None:
            raise error

        made = SchemaRegistry(
            Connections(
                name="x",
                kafka={"bootstrap.servers": "a:1"},
                registry=Registry(url="http://127.0.0.1:1"),
            )
        )
        for question in ("get_versions", "get_schema"):
            monkeypatch.setattr(made._client, question, refuse)
        return made

    return make


def test_the_registrys_own_word_for_unknown_is_believed(
    answering: Callable[[Exception], SchemaRegistry],
) -> None:
    no_subject = answering(SchemaRegistryError(404, 40401, "no subject"))
    assert no_subject.subject_schemas("s") == []
    assert answering(SchemaRegistryError(404, 40403, "no schema")).schema(1) is None


@pytest.mark.parametrize(
    "error",
    [
        SchemaRegistryError(404, -1, "<html>not found</html>"),
        SchemaRegistryError(500, 50001, "store"),
        ConnectionError("refused"),
    ],
)
def test_any_other_refusal_says_nothing_of_schemas(
    error: Exception, answering: Callable[[Exception], SchemaRegistry]
) -> None:
    registry = answering(error)
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        registry.subject_schemas("s")
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        registry.schema(1)


@pytest.mark.parametrize("status", [401, 403])
def test_a_registry_that_lets_nobody_in_is_not_waited_for(
    status: int, answering: Callable[[Exception], SchemaRegistry]
) -> None:
    registry = answering(SchemaRegistryError(status, status, "who are you"))
    with pytest.raises(ConfigurationError, match=r"username.* under registry in target x"):
        registry.subject_schemas("s")


def test_junk_that_looks_framed_is_not_asked_for_by_the_thousand(
    answering: Callable[[Exception], SchemaRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = answering(SchemaRegistryError(404, 40403, "no schema"))
    stream = Stream("s.t", "bronze.t", "", {}, frozenset(), IngestMeta(topic="t"))
    asked: list[int] = []
    monkeypatch.setattr(registry, "schema", lambda number, _ids: asked.append(number))
    schemas = Schemas(registry, stream, 0, lambda seconds: None)

    assert not schemas.learn([7_000_000, *range(9000, 0, -1)], "value")
    assert asked == list(range(1, 51))
    assert not schemas.learn([3, 99], "value")
    assert asked[50:] == [99]


@pytest.mark.parametrize(("since", "times"), [(0.0, 3), (-4.5, 2), (-60.0, 1)])
def test_an_id_is_waited_for_from_when_its_record_was_there(
    since: float,
    times: int,
    answering: Callable[[Exception], SchemaRegistry],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = answering(SchemaRegistryError(404, 40403, "no schema"))
    stream = Stream("s.t", "bronze.t", "", {}, frozenset(), IngestMeta(topic="t"))
    asked: list[int] = []
    monkeypatch.setattr(registry, "schema", lambda number, _ids: asked.append(number))
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def wait(_seconds: float) -> None:
        now[0] += 4.0

    schemas = Schemas(registry, stream, 5, wait)
    assert not schemas.learn([7], "value", now[0] + since)
    assert len(asked) == times
