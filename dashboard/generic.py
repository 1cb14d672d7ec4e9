"""A page without a layout: each query as a line chart or as a table."""

from __future__ import annotations

import pyarrow as pa
import streamlit as st

from dashboard import queries
from dashboard.charts import steps
from dashboard.page import Page, show_table


def show(page: Page) -> None:
    """All queries of the page without parameters, sorted by name."""
    for figure, query in queries.of_page(page.name).items():
        if not query.parameters():
            page.figure(figure, _show)


def _show(rows: pa.Table) -> None:
    """A line chart for two columns, a time and a number; otherwise a table."""
    kinds = rows.schema.types
    is_line = (
        len(kinds) == 2
        and pa.types.is_temporal(kinds[0])
        and (pa.types.is_integer(kinds[1]) or pa.types.is_floating(kinds[1]))
    )
    if is_line:
        st.altair_chart(steps(rows, *rows.column_names))
    else:
        show_table(rows)
