"""Overview: row counts of each domain, and recent sales."""

from __future__ import annotations

from datetime import timedelta

import streamlit as st

from dashboard.charts import steps
from dashboard.page import Page, where_built

DOMAINS = ("rentals", "smoothies", "tickets", "museum")
_SHOWN = timedelta(hours=6)


def show(page: Page) -> None:
    """A card per domain, and the latest windows of rental sales."""
    for column, domain in zip(st.columns(len(DOMAINS)), DOMAINS, strict=True):
        with column.container(border=True):
            page.heading(domain)
            with where_built():
                _card(page, domain)
    with where_built():
        newest_at = page.first("newest_window")["newest_at"]
        if newest_at:
            page.chart(
                "sales_over_time",
                lambda rows: steps(rows, "window_start_at", "sales_amount"),
                since=newest_at - _SHOWN,
            )


def _card(page: Page, domain: str) -> None:
    summary = page.first(domain)
    st.metric("Rows", f"{summary['stored_count']:,}")
    if summary["amount"] is not None:
        st.metric("Amount", f"{summary['amount']:,.2f}")
    newest_at = summary["newest_at"]
    st.caption(f"Newest row: {newest_at:%Y-%m-%d %H:%M:%S} UTC" if newest_at else "No rows yet.")
