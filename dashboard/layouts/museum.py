"""Museum: works by nationality and classification, and an artist as of a point in time."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

import streamlit as st

from dashboard.charts import bars
from dashboard.page import Page, where_built

_MOMENT = timedelta(microseconds=1)


def show(page: Page) -> None:
    """Counts, then one artist as of the chosen time."""
    left, right = st.columns(2)
    with left:
        page.chart("works_by_nationality", lambda rows: bars(rows, "artwork_count", "nationality"))
    with right:
        page.chart(
            "works_by_classification", lambda rows: bars(rows, "artwork_count", "classification")
        )
    page.heading("changed_artists")
    with where_built():
        rows = page.rows("changed_artists").to_pylist()
        artists = {row["artist_id"]: row for row in rows}
        if not artists:
            st.info("No rows yet.")
            return
        artist_id = st.selectbox(
            "Artist", artists, format_func=lambda of: _named(artists[of]), key="artist"
        )
        # A slider needs two ends; the time after the last change shows the current version.
        first_at = artists[artist_id]["first_at"].replace(tzinfo=None)
        last_at = artists[artist_id]["last_at"].replace(tzinfo=None) + _MOMENT
        instant = st.slider(
            "Instant (UTC)",
            first_at,
            last_at,
            last_at,
            format="YYYY-MM-DD HH:mm:ss",
            key=f"instant-{artist_id}",
        ).replace(tzinfo=UTC)
        page.table("artist_at", artist_id=artist_id, instant=instant)
        page.table("versions_of_artist", artist_id=artist_id)


def _named(artist: dict[str, Any]) -> str:
    return f"{artist['artist_name']}: {artist['version_count']} versions"
