"""What a project promises, what is posted of an alert, and how often a receiver is asked.

Fails when a promise is read as another one, or a notice is posted twice, never, or with the URL in
an error.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_ingest.alerts.alert import Alert, Found, Kind
from spark_ingest.alerts.alert_log import Event, Notice, to_post
from spark_ingest.alerts.promises import FreshExposure, FreshSource, Promises, read_promises
from spark_ingest.alerts.webhook import Form, Webhook, plain, slack, webhook_of
from spark_ingest.connect.profile import Target
from spark_ingest.errors import ConfigurationError, ServiceUnavailable
from tests.python.unit.spark_ingest.alerts.receiver import receiving

NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)
STALE = Alert(Kind.STALE_SOURCE, "pagila.sales", "its newest row is old", "dbt source")
GAP = Alert(Kind.GAP, "pagila.sales", "offsets <3> & more expired", "recover")


def manifest(folder: Path, **parts: Any) -> Path:
    empty: dict[str, Any] = {name: {} for name in ("sources", "nodes", "unit_tests", "exposures")}
    file = folder / "manifest.json"
    file.write_text(json.dumps(empty | parts))
    return file


def source(name: str, **freshness: Any) -> dict[str, Any]:
    return {
        "source_name": "pagila",
        "name": name,
        "schema": "bronze",
        "identifier": f"pagila__{name}",
        "loaded_at_field": "_ingested_at",
        "freshness": freshness,
    }


def exposure(max_age: Any) -> dict[str, Any]:
    return {
        "name": "board",
        "original_file_path": "models/e.yml",
        "config": {"meta": {"max_age": max_age}},
        "depends_on": {"nodes": ["model.p.sales", "source.p.dbt.runs"]},
    }


def test_a_manifest_says_what_is_promised(tmp_path: Path) -> None:
    day, week = ({"count": n, "period": "day"} for n in (1, 7))
    none = {"count": None, "period": None}
    sources = {
        "a": source("sales", warn_after=day, error_after=week),
        "b": source("film", warn_after=day, error_after=none),
        "c": source("silent") | {"freshness": None},
        "d": source("runs") | {"source_name": "dbt", "schema": "x_state"},
    }
    sources["d"]["identifier"] = "runs"
    nodes = {"model.p.sales": {"schema": "marts", "alias": "fct_sales"}}

    read = read_promises(
        manifest(
            tmp_path,
            sources=sources,
            nodes=nodes,
            unit_tests={"unit_test.p.u": {}},
            exposures={"e": exposure({"count": 26, "period": "hour"})},
        )
    )

    assert read == Promises(
        "x_state.runs",
        frozenset({"model.p.sales", "unit_test.p.u"}),
        (
            FreshSource("pagila.sales", "bronze.pagila__sales", "_ingested_at", timedelta(days=7)),
            FreshSource("pagila.film", "bronze.pagila__film", "_ingested_at", timedelta(days=1)),
        ),
        (FreshExposure("board", timedelta(hours=26), {"model.p.sales": "marts.fct_sales"}),),
    )


@pytest.mark.parametrize(
    "max_age", [{"count": 0, "period": "hour"}, {"count": 1, "period": "week"}, "1d"]
)
def test_an_age_that_is_none_is_refused_with_its_file_and_key(tmp_path: Path, max_age: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"models/e\.yml: exposure board: config\.meta\.max_age"
    ):
        read_promises(manifest(tmp_path, exposures={"e": exposure(max_age)}))


def test_what_began_and_what_is_over_is_posted_once() -> None:
    first = to_post([], Found((STALE, GAP)))
    opened = [Notice(Event.BEGAN, alert, NOON) for alert in (STALE, GAP)]

    assert first == [Notice(Event.BEGAN, STALE), Notice(Event.BEGAN, GAP)]
    assert to_post(opened, Found((STALE, GAP))) == []
    assert to_post(opened, Found((GAP,))) == [Notice(Event.OVER, STALE, NOON)]


def test_what_could_not_be_looked_at_is_not_over() -> None:
    opened = [Notice(Event.BEGAN, GAP, NOON)]

    assert to_post(opened, Found((), frozenset({Kind.GAP}))) == []


def test_a_notice_says_what_is_the_matter_and_what_helps() -> None:
    began, over = Notice(Event.BEGAN, GAP), Notice(Event.OVER, GAP, NOON)

    assert plain(over) == {
        "event": "over",
        "kind": "gap",
        "subject": "pagila.sales",
        "message": "offsets <3> & more expired",
        "help": "recover",
        "began_at": "2026-03-31T12:00:00+00:00",
    }
    assert slack(began) == {
        "text": ":rotating_light: *gap* pagila.sales: offsets &lt;3&gt; &amp; more "
        "expired\n`recover`"
    }
    assert "over" in slack(over)["text"]


@pytest.mark.parametrize(
    ("answers", "asked"), [([200], 1), ([503, 429, 204], 3), ([500, 500, 500], 3), ([404], 1)]
)
def test_a_receiver_that_is_busy_is_asked_again(answers: list[int], asked: int) -> None:
    pauses: list[float] = []
    with receiving(answers) as receiver:
        webhook = Webhook(webhook=f"{receiver.url}/secret", form=Form.JSON)
        if answers[-1] < 300:
            webhook.post(Notice(Event.BEGAN, GAP), pauses.append)
        else:
            with pytest.raises(ServiceUnavailable, match=str(answers[-1])) as failure:
                webhook.post(Notice(Event.BEGAN, GAP), pauses.append)
            assert "secret" not in str(failure.value)

    assert len(receiver.bodies) == asked
    assert len(pauses) == asked - 1
    assert receiver.bodies[0] == plain(Notice(Event.BEGAN, GAP))


def test_a_receiver_that_is_away_is_named_without_its_secret() -> None:
    with receiving([]) as receiver:
        url = f"{receiver.url}/secret"

    with pytest.raises(ServiceUnavailable, match=r"127\.0\.0\.1") as failure:
        Webhook(webhook=url).post(Notice(Event.BEGAN, GAP), lambda _: None)

    assert "secret" not in str(failure.value)


def target(**alerts: str) -> Target:
    return Target("t", "p.yml: targets.t", {}, {}, alerts, {"URL": "https://h/secret"})


def test_a_target_names_a_webhook_or_none() -> None:
    assert webhook_of(target()) is None
    assert webhook_of(target(webhook="${NONE:-}", form="slack")) is None
    assert webhook_of(target(webhook="${URL}", form="slack")) == Webhook(
        webhook="https://h/secret", form=Form.SLACK
    )


@pytest.mark.parametrize(
    ("alerts", "said"),
    [
        ({"webhook": "${URL}", "form": "teams"}, r"targets\.t\.alerts\.form"),
        ({"webhook": "${URL}", "to": "me"}, r"targets\.t\.alerts\.to"),
        ({"webhook": "hooks.example.com/x"}, "must begin with http"),
    ],
)
def test_a_wrong_webhook_is_refused_with_its_key(alerts: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        webhook_of(target(**alerts))

    assert "secret" not in str(refused.value)
