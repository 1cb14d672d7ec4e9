"""Smoothies: running totals, newest purchases, windows and stock."""

from __future__ import annotations

from datetime import timedelta

import streamlit as st

from dashboard.charts import bars, lines, small_multiples
from dashboard.page import Page, chosen_time, where_built

# Up to this time range the totals are shown per minute.
_BY_MINUTE = timedelta(hours=6)


def show(page: Page) -> None:
    """Totals and windows above, purchases and stock below."""
    with where_built():
        newest = page.first("newest_purchases")
        if not newest:
            st.info("No rows yet.")
            return
        shown = chosen_time()
        since = newest["purchased_at"] - shown
        page.chart(
            "running_totals",
            lambda rows: small_multiples(rows, "bought_at", "running_sales_amount", "product_name"),
            since=since,
            is_by_hour=shown > _BY_MINUTE,
        )
        page.chart(
            "sales_by_window",
            lambda rows: lines(rows, "window_start_at", "sales_amount", "product_category"),
            since=since,
        )
    left, right = st.columns(2)
    with left:
        page.table("newest_purchases")
    with right:
        page.chart(
            "stock", lambda rows: bars(rows, "new_level", "product_name", "product_category")
        )
