"""Settings that the tables' exactness rests on: another value is refused by name."""

from __future__ import annotations

import pytest

from sandbox.settings import PROJECT
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.required_settings import refuse_limits, refuse_settings

GOOD: dict[str, str | None] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalog.lake.cache-enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
}
LIMITS: dict[str, str | None] = {
    "org.apache.avro.limits.string.maxLength": "16777216",
    "org.apache.avro.limits.bytes.maxLength": "16777216",
    "org.apache.avro.limits.collectionItems.maxLength": "1000000",
}


def test_a_session_in_utc_without_a_cached_catalog_is_taken() -> None:
    refuse_settings(GOOD)
    refuse_settings({**GOOD, "spark.sql.session.timeZone": "Etc/UTC"})
    refuse_settings({**GOOD, "spark.sql.ansi.enabled": "TRUE"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.session.timeZone", "Europe/Berlin"),
        ("spark.sql.catalog.lake.cache-enabled", "true"),
        ("spark.sql.catalog.lake.cache-enabled", None),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.storeAssignmentPolicy", "LEGACY"),
        ("spark.sql.avro.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    ],
)
def test_another_setting_is_refused_with_the_line_to_write(name: str, value: str | None) -> None:
    reported = f"{name} is {value or 'not set'}, and .*the line `{name} {GOOD[name]}`"
    with pytest.raises(ConfigurationError, match=reported):
        refuse_settings({**GOOD, name: value})


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [None, "", "0", "-1", "much", "2147483639"])
def test_a_limit_that_is_none_is_refused_with_where_to_set_it(name: str, value: str | None) -> None:
    refuse_limits(LIMITS, "the driver", "spark.driver.extraJavaOptions")
    reported = f"{name} is {value or 'not set'} on an executor, .*add -D{name}={LIMITS[name]}"
    with pytest.raises(ConfigurationError, match=reported) as refused:
        refuse_limits({**LIMITS, name: value}, "an executor", "the.setting")
    assert "to the.setting, as in profiles/spark-defaults.conf" in str(refused.value)


def test_the_projects_own_configuration_has_every_limit_on_both_sides() -> None:
    text = (PROJECT / "profiles/spark-defaults.conf").read_text()
    for side in ("driver", "executor"):
        (line,) = [
            line for line in text.splitlines() if line.startswith(f"spark.{side}.extraJavaOptions")
        ]
        for name, value in LIMITS.items():
            assert f"-D{name}={value}" in line.split()
