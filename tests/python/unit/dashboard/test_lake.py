"""One look for each page, and a newer one where files of it are gone.

Fails when a page shows two looks at once, or an error where a newer look has none.
"""

from __future__ import annotations

import pytest

from dashboard.lake import Look, show_at_a_look


def shown(fail: int) -> list[int]:
    """The looks at which a page was shown, as many of which lost a file meanwhile."""
    taken: list[Look] = []
    tried: list[int] = []

    def look() -> Look:
        taken.append(Look({}))
        return taken[-1]

    def show(at: Look) -> None:
        tried.append([one is at for one in taken].index(True))
        if len(tried) <= fail:
            raise FileNotFoundError("a data file")

    show_at_a_look(look, show)
    return tried


def test_a_page_is_shown_at_one_look() -> None:
    assert shown(fail=0) == [0]


def test_a_page_whose_files_were_removed_is_shown_at_a_newer_look() -> None:
    assert shown(fail=2) == [0, 1, 2]


def test_a_damaged_lake_is_no_endless_wait() -> None:
    with pytest.raises(FileNotFoundError):
        shown(fail=3)
