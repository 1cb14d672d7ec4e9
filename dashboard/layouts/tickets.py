"""Tickets: sales by category and month, top sellers and events, prices of a listing."""

from __future__ import annotations

import streamlit as st

from dashboard.charts import bars, steps
from dashboard.page import Page, where_built


def show(page: Page) -> None:
    """Sales charts in pairs, then the price changes of one listing."""
    left, right = st.columns(2)
    with left:
        page.chart(
            "sales_by_category",
            lambda rows: bars(rows, "sales_amount", "category_name", "category_group"),
        )
        page.table("top_events")
    with right:
        page.chart("sales_by_month", lambda rows: steps(rows, "month_start_date", "sales_amount"))
        page.table("top_sellers")
    page.heading("repriced_listings")
    with where_built():
        listings = page.rows("repriced_listings").column("listing_id").to_pylist()
        if not listings:
            st.info("No listing has changed its price yet.")
            return
        chosen = st.selectbox("Listing", listings, key="listing")
        page.chart(
            "prices_of_listing",
            lambda rows: steps(rows, "valid_from_at", "ticket_amount"),
            listing_id=chosen,
        )
