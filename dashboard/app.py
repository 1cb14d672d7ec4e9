"""The Streamlit app with its pages; `python -m dashboard` runs it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import streamlit as st
from pyiceberg.catalog import Catalog

from dashboard import generic, queries
from dashboard.lake import LakeIsEmpty, Look, look_at, open_catalog, show_at_a_look
from dashboard.page import Page

# These pages first, then the others by name.
FIRST = ("overview", "rentals", "smoothies", "tickets", "museum", "pipeline")
INTERVALS = {"5 s": 5, "15 s": 15, "1 min": 60, "off": None}


# A lake that was reset has another catalog file.
@st.cache_resource(show_spinner=False, ttl=60)
def _catalog() -> Catalog:
    return open_catalog()


def _module(name: str) -> ModuleType:
    """The layout of a page; a page without one shows each of its queries."""
    path = f"dashboard.layouts.{name}"
    return import_module(path) if find_spec(path) else generic


def _show(name: str, every: int | None) -> None:
    st.title(_title(name))
    st.fragment(show_once, run_every=every)(name)


def show_once(name: str) -> None:
    """Render a page from one set of snapshots."""
    place, started = st.empty(), time.perf_counter()

    def show(look: Look) -> None:
        with place.container():
            _show_at(name, look, started)

    try:
        show_at_a_look(lambda: look_at(_catalog(), queries.tables_of(name)), show)
    except LakeIsEmpty as error:
        st.warning(str(error))


def _show_at(name: str, look: Look, started: float) -> None:
    newest = look.newest_at
    freshness = st.empty()
    _module(name).show(Page(name, look))
    seconds = time.perf_counter() - started
    freshness.caption(
        f"Newest snapshot {newest:%Y-%m-%d %H:%M:%S} UTC, "
        f"{_age((datetime.now(UTC) - newest).total_seconds())} ago; shown in {seconds:.2f} s"
        if newest
        else "No table of this page is built yet."
    )


def _age(seconds: float) -> str:
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:.0f} s"


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def names() -> list[str]:
    """The pages, in order."""
    return [*FIRST, *(name for name in queries.pages() if name not in FIRST)]


def main() -> None:
    """One run of the app; Streamlit runs it for each session."""
    st.set_page_config(page_title="Millrace", page_icon="🌊", layout="wide")
    chosen = st.sidebar.selectbox("Refresh every", list(INTERVALS), key="every")
    pages = [
        st.Page(
            partial(_show, name, INTERVALS[chosen]),
            title=_title(name),
            url_path=name,
            default=name == FIRST[0],
        )
        for name in names()
    ]
    st.navigation(pages).run()


if __name__ == "__main__":
    main()
