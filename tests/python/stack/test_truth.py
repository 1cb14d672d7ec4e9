"""What both engines hold is what the databases hold, and held, whatever dies in between.

Fails when a history or a current table differs from its database after kills and schema
changes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sandbox.databases.known import DATABASES
from sandbox.services.stack import SERVICES
from tests.python.conftest import make_home
from tests.python.stack.truth import INSTANTS, Trial
from tests.python.stack.truth_databases import Captured, Lane

MINUTES = 10.0


def _captured(table: str, source: str, renamed: str, derived: str = "") -> Captured:
    """A table, and what columns of its models are called in the database."""
    names = dict(pair.split("=") for pair in renamed.split())
    return Captured(table, f"int_{source}__{table}", names, frozenset(derived.split()))


LANES = (
    Lane(
        DATABASES["moma"],
        "moma",
        (
            _captured("artists", "moma", "artist_name=name"),
            _captured("artworks", "moma", "artwork_title=title"),
        ),
    ),
    Lane(
        DATABASES["ecomm"],
        "tickit",
        (
            _captured(
                "listing", "tickit",
                "listing_id=listid seller_id=sellerid event_id=eventid date_id=dateid"
                " ticket_count=numtickets ticket_amount=priceperticket"
                " listing_amount=totalprice offered_at=listtime",
            ),
            _captured(
                "sale", "tickit",
                "ticket_sale_id=saleid listing_id=listid seller_id=sellerid buyer_id=buyerid"
                " event_id=eventid date_id=dateid sold_ticket_count=qtysold"
                " tickets_amount=pricepaid commission_amount=commission sold_at=saletime",
            ),
            _captured(
                "date", "tickit",
                "date_id=dateid day_code=day month_code=month quarter_code=qtr"
                " week_number=week calendar_year=year is_holiday=holiday calendar_date=caldate",
                "quarter_number month_number day_of_month",
            ),
        ),
    ),
    Lane(
        DATABASES["pagila"],
        "pagila",
        (
            _captured(
                "film", "pagila",
                "film_title=title film_description=description film_rating=rating"
                " film_words=fulltext rental_days=rental_duration rental_amount=rental_rate"
                " film_minutes=length replacement_amount=replacement_cost"
                " updated_at=last_update",
            ),
            _captured("film_actor", "pagila", "updated_at=last_update"),
        ),
        truncates=True,
    ),
)  # fmt: skip


def assert_tables_are_the_databases(folder: Path, minutes: float) -> None:
    """Random changes for so long; 0 differences on both engines, now and at ten instants.

    An instant lies in a pause in which the test read the database. MariaDB's pauses are of
    more than a second, because its log's times are whole seconds: a change is known to be
    before or behind an instant only when a second ends between them.
    """
    seed = int(os.environ.get("SEED", time.time()))
    print(f"\nseed {seed}: {minutes:g} minutes")
    lanes = [lane for lane in LANES if SERVICES[lane.database.engine].lacks_platform() is None]

    found = Trial(make_home(folder), lanes, seed, minutes * 60).run()

    print(found)
    assert not found.differences, "\n".join([f"seed {seed}", *found.differences[:20]])
    for lane in lanes:
        assert found.changes[lane.database.name] > 0
        assert found.moments[lane.database.name] >= INSTANTS
    assert {name for how, name in found.faults if how == "restart"} == {
        "connect",
        "kafka",
        "ingest",
    }
    assert "kill" in {how for how, _ in found.faults}
    assert found.cells > 0


@pytest.mark.nightly
def test_two_minutes_of_changes_are_what_the_databases_hold(tmp_path: Path) -> None:
    assert_tables_are_the_databases(tmp_path / "sand box", 2.0)


@pytest.mark.long
def test_both_engines_hold_what_the_databases_hold_and_held(tmp_path: Path) -> None:
    """``TRUTH_MINUTES=30`` does more; ``SEED`` makes the same changes again."""
    minutes = float(os.environ.get("TRUTH_MINUTES", MINUTES))
    assert_tables_are_the_databases(tmp_path / "sand box", minutes)
