"""Charts; all times are shown in UTC."""

from __future__ import annotations

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

_HEIGHT, _SMALL = 260, 180
_BAR = 24
_UTC = alt.Scale(type="utc")


def in_words(column: str) -> str:
    """The display name of a column."""
    return column.replace("_", " ").capitalize()


def lines(rows: pa.Table, x: str, y: str, by: str) -> alt.Chart:
    """A line chart with a line per value of a column.

    Args:
        rows: The rows.
        x: A column of times.
        y: A column of numbers.
        by: The column that separates the lines.
    """
    return (
        alt.Chart(rows)
        .mark_line(point=rows.num_rows < 200)
        .encode(
            x=alt.X(x, type="temporal", scale=_UTC, title=None),
            y=alt.Y(y, type="quantitative", title=in_words(y)),
            color=_colour(by),
            tooltip=[_tip(rows, name) for name in rows.column_names],
        )
        .properties(height=_HEIGHT)
    )


def small_multiples(rows: pa.Table, x: str, y: str, by: str) -> list[alt.Chart]:
    """Small multiples: a chart per value of a column, with shared scales."""
    ends = [pc.min(rows[x]).as_py(), pc.max(rows[x]).as_py()]
    of_x = alt.X(x, type="temporal", scale=alt.Scale(type="utc", domain=ends), title=None)
    top = alt.Scale(domain=[0, pc.max(rows[y]).as_py()])
    of_y = alt.Y(y, type="quantitative", scale=top, title=None)
    tips = [_tip(rows, name) for name in rows.column_names]
    return [
        alt.Chart(rows.filter(pc.equal(rows[by], value)), title=value)
        .mark_area(line=True, opacity=0.4)
        .encode(x=of_x, y=of_y, tooltip=tips)
        .properties(height=_SMALL)
        for value in rows[by].unique().to_pylist()
    ]


def bars(rows: pa.Table, x: str, y: str, by: str | None = None) -> alt.Chart:
    """Horizontal bars, in the order of the rows."""
    chart = (
        alt.Chart(rows)
        .mark_bar()
        .encode(
            x=alt.X(x, type="quantitative", title=in_words(x)),
            y=alt.Y(y, type="nominal", sort=None, title=None),
            tooltip=[_tip(rows, name) for name in rows.column_names],
        )
        # Without it Vega logs a warning in the console.
        .properties(height=_BAR * max(rows.num_rows, 4))
    )
    if by:
        chart = chart.encode(color=_colour(by))
    return chart


def steps(rows: pa.Table, x: str, y: str) -> alt.Chart:
    """A step chart: a value applies until the next."""
    return (
        alt.Chart(rows)
        .mark_line(interpolate="step-after", point=True)
        .encode(
            x=alt.X(x, type="temporal", scale=_UTC, title=None),
            y=alt.Y(y, type="quantitative", title=in_words(y)),
            tooltip=[_tip(rows, name) for name in rows.column_names],
        )
        .properties(height=_HEIGHT)
    )


def _colour(by: str) -> alt.Color:
    """A color per value; the legend is below, which suits narrow windows."""
    legend = alt.Legend(orient="bottom", columns=4, title=None)
    return alt.Color(by, type="nominal", legend=legend)


def _tip(rows: pa.Table, column: str) -> alt.Tooltip:
    kind = rows.schema.field(column).type
    if pa.types.is_temporal(kind):
        return alt.Tooltip(column, type="temporal", format="%Y-%m-%d %H:%M", title=in_words(column))
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    kinds = ("quantitative", ",.2~f") if is_number else ("nominal", "")
    return alt.Tooltip(column, type=kinds[0], format=kinds[1], title=in_words(column))
