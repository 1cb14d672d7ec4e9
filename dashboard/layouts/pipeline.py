"""Pipeline: lag of the streams, and completeness of the records."""

from __future__ import annotations

from dashboard.charts import lines
from dashboard.page import Page


def show(page: Page) -> None:
    """Lag, ledger and quarantine of ingest; then the runs of dbt."""
    page.chart(
        "lag_by_hour",
        lambda rows: lines(
            rows, "hour_start_at", "kafka_to_ingest_average_seconds", "bronze_table"
        ),
    )
    for figure in ("ledger", "quarantine", "failures", "builds", "ages"):
        page.table(figure)
