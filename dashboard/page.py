"""The figures of a page: rows of its queries, all from the same snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from operator import attrgetter
from typing import Any

import altair as alt
import pyarrow as pa
import streamlit as st

from dashboard import queries
from dashboard.charts import in_words
from dashboard.lake import Look
from dashboard.queries import Query, TablesMissing, Value

TIMES = {
    "hour": timedelta(hours=1),
    "6 hours": timedelta(hours=6),
    "day": timedelta(days=1),
    "7 days": timedelta(days=7),
    "31 days": timedelta(days=31),
}
# Number of cached results.
_ENTRIES = 500
_BESIDE = 3


class Page:
    """One page; each figure is a file of ``dashboard/queries/<page>``."""

    def __init__(self, name: str, look: Look) -> None:
        self.name = name
        self.look = look
        self._of = queries.of_page(name)

    def rows(self, figure: str, **values: Value) -> pa.Table:
        """The rows of a query.

        Args:
            figure: The name of its file, without ``.sql``.
            values: Its parameters by name.

        Raises:
            TablesMissing: The lake does not have all of its tables.
        """
        return _rows(self._of[figure], values, self.look)

    def first(self, figure: str, **values: Value) -> dict[str, Any]:
        """The first row of a query by column; empty if there is none."""
        rows = self.rows(figure, **values)
        return rows.slice(0, 1).to_pylist()[0] if rows.num_rows else {}

    def heading(self, figure: str) -> None:
        """Title and description, from the query's comment."""
        query = self._of[figure]
        st.subheader(query.title, anchor=figure)
        if query.about:
            st.caption(query.about)

    def table(self, figure: str, **values: Value) -> None:
        """Heading and rows as a table."""
        self.figure(figure, show_table, **values)

    def chart(
        self, figure: str, draw: Callable[[pa.Table], alt.Chart | list[alt.Chart]], **values: Value
    ) -> None:
        """Heading and rows as a chart, or as several side by side."""
        self.figure(figure, lambda rows: _draw(draw(rows)), **values)

    def figure(self, figure: str, show: Callable[[pa.Table], Any], **values: Value) -> None:
        """Heading and rows with custom rendering, or a note if there are none."""
        self.heading(figure)
        with where_built():
            rows = self.rows(figure, **values)
            if rows.num_rows:
                show(rows)
            else:
                st.info("No rows yet.")


def _draw(charts: alt.Chart | list[alt.Chart]) -> None:
    if not isinstance(charts, list):
        st.altair_chart(charts)
        return
    # In a narrow window Streamlit stacks columns.
    for first in range(0, len(charts), _BESIDE):
        row = charts[first : first + _BESIDE]
        for column, chart in zip(st.columns(_BESIDE), row, strict=False):
            column.altair_chart(chart)


def show_table(rows: pa.Table) -> None:
    """Rows as a table: readable column names, times in UTC, sums with two decimals."""
    columns = {field.name: _shown(field) for field in rows.schema}
    st.dataframe(rows, hide_index=True, column_config=columns)


def _shown(field: pa.Field) -> Any:
    label = in_words(field.name)
    if pa.types.is_timestamp(field.type):
        return st.column_config.DatetimeColumn(label, format="YYYY-MM-DD HH:mm:ss", timezone="UTC")
    if pa.types.is_floating(field.type):
        return st.column_config.NumberColumn(label, format="%.2f")
    return st.column_config.Column(label)


def chosen_time() -> timedelta:
    """The chosen time range before the newest row."""
    return TIMES[st.selectbox("Show the last", list(TIMES), 2, key="shown")]


@contextmanager
def where_built() -> Iterator[None]:
    """Show the command that builds missing tables of the body."""
    try:
        yield
    except TablesMissing as missing:
        # Tables in `state` are not models: every dbt invocation writes them.
        parts = [name.partition(".") for name in missing.tables]
        models = " ".join(f"+{name}" for schema, _, name in parts if schema != "state")
        select = f" --select {models}" if models else ""
        st.info(f"Not built yet: `dbt build{select}`")


# Run again only if the query, or a table of the page, has changed.
@st.cache_data(
    max_entries=_ENTRIES,
    show_spinner=False,
    hash_funcs={Query: attrgetter("sql"), Look: Look.versions},
)
def _rows(query: Query, values: dict[str, Value], look: Look) -> pa.Table:
    return query.rows(look, values)
