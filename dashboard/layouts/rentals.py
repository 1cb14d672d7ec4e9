"""Rentals: windows by region, countries, and late sales."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.charts import small_multiples
from dashboard.page import Page, chosen_time, where_built


def show(page: Page) -> None:
    """Windows, countries, and the late sales of one window."""
    with where_built():
        newest_at = page.first("newest_window")["newest_at"]
        if newest_at is None:
            st.info("No rows yet.")
            return
        since = newest_at - chosen_time()
        page.chart(
            "sales_by_region",
            lambda rows: small_multiples(rows, "window_start_at", "sales_amount", "sales_region"),
            since=since,
        )
        left, right = st.columns(2)
        with left:
            page.table("sales_by_country")
        with right:
            page.table("late_sales_by_window", since=since)
            rows = page.rows("late_sales_by_window", since=since).to_pylist()
            late = {row["window_start_at"]: row for row in rows if row["late_count"]}
            if late:
                start = st.selectbox(
                    "Window", late, format_func=lambda at: _named(late[at]), key="window"
                )
                page.table(
                    "late_sales", window_start_at=start, window_end_at=late[start]["window_end_at"]
                )


def _named(window: dict[str, Any]) -> str:
    start, end = window["window_start_at"], window["window_end_at"]
    return f"{start:%Y-%m-%d %H:%M} to {end:%H:%M}: {window['late_count']} late"
