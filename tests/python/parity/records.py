"""What both engines read: three rounds of bronze, with ingest's own account of them.

``first`` has ordinary days, awkward texts, and a stream that was cut into commits;
``increment`` has rows that are late, sent again, moved and gone, a day that empties, a
product after its purchases, and still passes every test of the data; ``odd`` has what
would fail one: times that are missing or of no calendar, numbers that are missing, and an
ingest that lost a record, doubled one and wrote one that is in no commit.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tests.python.world.artists import ARTISTS
from tests.python.world.captured import Captured, Museum
from tests.python.world.kafka import Row
from tests.python.world.records import (
    DAYS,
    LATE_PRODUCT,
    LONELY_DAY,
    LONELY_PURCHASE,
    LONELY_SALE,
    Records,
    catalogue,
)

Step = dict[str, Any]

SALES = "bronze.pagila__sales"
PRODUCTS = "bronze.smoothies__products"
PURCHASES = "bronze.smoothies__purchases"
INVENTORIES = "bronze.smoothies__inventories"
ARTWORKS = "bronze.moma__artworks"

_PLACE = ("_kafka_topic", "_kafka_topic_id", "_kafka_partition", "_kafka_offset")
_BEGIN = datetime(2026, 1, 7, 8, 0, 0, 123456, tzinfo=UTC)
# Blanks at either end and nothing but blanks, letters of two to four bytes, what CSV and
# SQL quote, no text at all, and one that just fits in bytes.
TEXTS = [
    "Lyon",
    "Lyon ",
    "  Lyon   ",
    "",
    "   ",
    "Zürich",
    "São Paulo 🏝️",
    "東京",
    'O\'Brien "and", \\N\n\tsons; --',
    "∅",
    "null",
    "ü" * 128,
]


class Bronze:
    """Commits as ingest makes them: the rows, what was quarantined, and the log's row.

    Attributes:
        steps: What ``lake_program`` is to do for the round that is made, in order.
        records: Makes the rows.
        museum: Makes those of the museum's captured tables.
        captured: Makes those of the other captured tables.
    """

    def __init__(self, seed: int) -> None:
        self.steps: list[Step] = []
        self.records = Records(seed)
        self.museum = Museum(seed)
        self.captured = Captured()
        self._commits: dict[str, int] = defaultdict(int)
        self._uuids: dict[str, str] = {}
        self._moment = _BEGIN

    def take_steps(self) -> Step:
        """The steps of the round as one, its tables beside each other; then none are left."""
        commits: dict[str, list[Step]] = defaultdict(list)
        added: dict[str, list[Row]] = defaultdict(list)
        for step in self.steps:
            if "commit" in step:
                commits[step["commit"]].append(step)
            else:
                added[step["add"]] += step["rows"]
        self.steps = []
        return {
            "together": [
                *({"in order": of_table} for of_table in commits.values()),
                *({"add": table, "rows": rows} for table, rows in added.items()),
            ]
        }

    def make_anew(self, table: str) -> None:
        """Another table under the name; what the log says so far is of one that is gone."""
        self._commits[table] = 0
        self._moment += timedelta(minutes=1)
        self._uuids[table] = str(UUID(int=len(self._uuids)))
        row = self._commit_row(
            table, (table, None), [], kind="table", value_bytes=0, started_at=None
        )
        self.steps.append({"add": "bronze.ingest_commits", "rows": [row]})

    def _commit_row(
        self, table: str, topic: tuple[str, str | None], offsets: list[Row], **other: Any
    ) -> Row:
        """What the log says of the newest commit."""
        return {
            "table_name": table,
            "commit_id": self._commits[table],
            "table_uuid": self._uuids.get(table),
            "kafka_topic": topic[0],
            "kafka_topic_id": topic[1],
            "offsets": offsets,
            "row_count": 0,
            "quarantined_count": 0,
            "started_at": self._moment.isoformat(),
            "committed_at": self._moment.isoformat(),
            **other,
        }

    def commit(self, table: str, rows: list[Row], aside: list[Row] | None = None) -> None:
        """Commit rows, by topic id as one stream may have several, and log each commit."""
        by_topic: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            by_topic[row["_kafka_topic_id"]].append(row)
        for taken in by_topic.values():
            self.steps.append({"commit": table, "rows": taken})
            self._log(table, taken, aside or [])
            aside = None

    def commit_all(self, tables: dict[str, list[Row]]) -> None:
        for table, rows in tables.items():
            self.commit(table, rows)

    def unlogged(self, table: str, rows: list[Row]) -> None:
        """Rows of no commit in the log, which has later ones."""
        self._commits[table] += 1
        self.steps.append({"commit": table, "rows": rows})

    def log_alone(self, table: str, rows: list[Row]) -> None:
        """A commit whose rows are in no table any more."""
        self._log(table, rows, [])

    def _log(self, table: str, rows: list[Row], aside: list[Row]) -> None:
        self._commits[table] += 1
        self._moment += timedelta(minutes=7, microseconds=1)
        ends: dict[int, tuple[int, int]] = {}
        for row in [*rows, *aside]:
            partition, offset = row["_kafka_partition"], row["_kafka_offset"]
            first, end = ends.get(partition, (offset, offset + 1))
            ends[partition] = min(first, offset), max(end, offset + 1)
        # A commit that was logged late has no bytes and no start.
        is_late = self._commits[table] % 3 == 0
        row = self._commit_row(
            table,
            (rows[0]["_kafka_topic"], rows[0]["_kafka_topic_id"]),
            [_range(p, first, end) for p, (first, end) in sorted(ends.items())],
            row_count=len(rows),
            quarantined_count=len(aside),
            value_bytes=None if is_late else 133 * len(rows),
            started_at=None if is_late else self._moment.isoformat(),
            committed_at=(self._moment + timedelta(seconds=2.5)).isoformat(),
        )
        self.steps.append({"add": "bronze.ingest_commits", "rows": [row]})
        if aside:
            self.steps.append({"add": "bronze.quarantine", "rows": aside})

    def give_up(self, table: str, last: Row, count: int) -> None:
        """Commit a gap: offsets behind the last row, which a person accepted as lost."""
        self._commits[table] += 1
        first = last["_kafka_offset"] + 1
        row = self._commit_row(
            table,
            (last["_kafka_topic"], last["_kafka_topic_id"]),
            [_range(last["_kafka_partition"], first, first + count)],
            value_bytes=0,
            kind="gap",
        )
        self.steps.append({"add": "bronze.ingest_commits", "rows": [row]})

    def quarantined(self, record: Row, message: str, **other: Any) -> Row:
        """A row of quarantine for a record that bronze could not take."""
        return {
            **{name: record[name] for name in _PLACE},
            "_kafka_timestamp": "2026-01-04T00:00:00.000001Z",
            "_kafka_value": base64.b64encode(b"\x00\x00\x00\x00\x07\xff").decode(),
            "_schema_id": 7,
            "stage": "decode",
            "error_class": "undecodable",
            "error_message": message,
            "_ingested_at": self._moment.isoformat(),
            **other,
        }


def _range(partition: int, first: int, end: int) -> Row:
    return {"partition": partition, "first_offset": first, "end_offset": end}


def first(bronze: Bronze) -> None:
    """Ordinary days of both domains, awkward texts, and every state of quarantine."""
    records = bronze.records
    # The log still has the commits of a dropped table: they are ignored.
    bronze.log_alone(PURCHASES, [records.purchase("CS01", "2026-01-02 12:00:00")])
    bronze.make_anew(PURCHASES)
    bronze.commit(PRODUCTS, catalogue(records, "2025-12-01 08:00:00"))
    bronze.commit_all(records.some(60, DAYS, newest=50))
    bronze.commit(SALES, [records.sale(LONELY_SALE, f"{LONELY_DAY} 12:00:00", partition=1)])
    bronze.commit(
        PURCHASES,
        [
            records.purchase(
                LATE_PRODUCT, f"{LONELY_DAY} 12:00:00.5", transaction_id=LONELY_PURCHASE
            )
        ],
    )
    bronze.commit(
        SALES,
        [
            records.sale(100 + number, "2026-01-02 13:30:00", city=text, district=text[::-1])
            for number, text in enumerate(TEXTS)
        ],
    )
    bronze.commit(
        SALES,
        [
            records.sale(150 + number, "2026-01-02 00:00:00", country=country)
            for number, country in enumerate(
                ["Japan ", "Côte d'Ivoire", "Åland Islands  ", "", " ", "japan", "Ö"]
            )
        ],
    )
    bronze.commit(
        PRODUCTS,
        [
            records.product(f"T{number:02d} ", "2026-01-01 00:00:00", item=text, size=text[:16])
            for number, text in enumerate(TEXTS)
        ],
    )
    # A transaction's marker lies among the records: an offset without one.
    begun = [records.sale(180, "2026-01-03 23:59:59.999999")]
    records.sales.record(0, None)
    ended = [records.sale(181, "2026-01-01 00:00:00")]
    aside = [
        bronze.quarantined(_unreadable(records), "the bytes end early: 'é' 🏝️ "),
        bronze.quarantined(
            _unreadable(records),
            "x" * 1500,
            discarded_at="2026-01-05T10:00:00Z",
            discard_reason="a test of ours  ",
        ),
    ]
    bronze.commit(SALES, [*begun, *ended], aside)
    replayed = records.sale(182, "2026-01-02 08:00:00")
    again = bronze.quarantined(replayed, "replayed", replayed_at="2026-01-06T10:00:00.5Z")
    bronze.commit(SALES, [replayed])
    bronze.steps.append({"add": "bronze.quarantine", "rows": [again]})
    _first_of_museum(bronze)
    _reconciled(bronze)
    bronze.commit_all(bronze.captured.first())


def _reconciled(bronze: Bronze) -> None:
    """Tables counted in their databases: before anything was known, and a moment ago."""
    counts = [
        ("moma.artists", "00000000000000000001", 3, "2026-01-07T06:00:00Z"),
        ("moma.artists", "00000000000000005004", 9, "2026-01-07T07:00:00Z"),
        ("moma.artworks", "00000000000000000001", 3, "2026-01-07T07:00:00.123456Z"),
        ("moma.artworks", "00000000000000005020", 3, "2026-03-01T07:00:00Z"),
        ("moma.exhibitions", "00000000000000005020", 3, "2026-03-01T07:00:00Z"),
    ]
    rows = [
        {
            "stream": stream,
            "table_name": f"bronze.{stream.replace('.', '__')}",
            "database_name": "moma",
            "source_table": f"public.{stream.partition('.')[2]} ",
            "source_position": position,
            "row_count": row_count,
            "reconciled_at": at,
        }
        for stream, position, row_count, at in counts
    ]
    bronze.steps.append({"add": "bronze.ingest_reconciliations", "rows": rows})


def _first_of_museum(bronze: Bronze) -> None:
    """Rows as a snapshot found them, some changes, and every type of a column."""
    artists = bronze.museum.artists
    for artist_id, text in enumerate(TEXTS[:10], start=1):
        artists.create(artist_id, (text, "Mexican" if artist_id % 3 else " "))
    bronze.museum.artist_rows()
    artists.snapshot()
    artists.update(1, ("Frida", "Mexican"))
    artists.delete(2)
    bronze.commit(ARTISTS, bronze.museum.artist_rows())
    work = bronze.museum.artwork
    bronze.commit(
        ARTWORKS,
        [
            work(
                1,
                "r",
                title="Roots ",
                artist_id=1,
                classification="Painting",
                acquisition_date=-1,
                height_cm="31.1150622301",
                weight_kg="1.2500",
                is_catalogued=True,
                updated_at="2026-01-02T03:04:05.000006Z",
            ),
            work(2, "r", title="NULL", artist_id=99, acquisition_date=20454),
            work(3, "c", title="Lost", artist_id=2, classification="Photograph"),
        ],
    )


def increment(bronze: Bronze) -> None:
    """What an increment can get wrong, and nothing that a test of the data refuses."""
    records = bronze.records
    bronze.commit_all(records.some(25, [*DAYS, "2026-01-04"], newest=60))
    # After its purchases; for a time gone by; once more and unchanged; and no longer sold.
    bronze.commit(
        PRODUCTS,
        [
            records.product(LATE_PRODUCT, "2026-01-02 10:00:00", item="Späte Sorte "),
            records.product("CS01", "2026-01-02 00:02:00", price="5.49"),
            *catalogue(records, "2026-01-03 09:00:00"),
            records.withdrawal("CS02", "2026-01-03 00:00:30"),
        ],
    )
    # The only sale of its day moves to another day, customer and partition.
    bronze.commit(
        SALES,
        [
            records.sale(
                LONELY_SALE, "2026-01-03 12:00:00", partition=2, sent_at="2026-01-06 00:00:00"
            )
        ],
    )
    # Sent again unchanged, and with another text.
    bronze.commit(
        SALES,
        [records.sale(100, "2026-01-02 13:30:00", city="Lyon"), _tombstone(records)],
        [
            bronze.quarantined(
                _unreadable(records), "no such schema", stage="schema", error_class="unknown_id"
            )
        ],
    )
    _increment_of_museum(bronze)
    bronze.commit_all(bronze.captured.increment())


def _increment_of_museum(bronze: Bronze) -> None:
    """In order, late, sent again, deleted, created once more, with another key."""
    artists = bronze.museum.artists
    artists.update(3, ("Hilma", None))
    artists.update(3, ("Hilma", "Swedish"))
    artists.delete(4)
    artists.create(2, ("Georgia", "American"))
    artists.rename(5, 25)
    artists.begin_update(6, ("Late", "Swedish"))
    artists.snapshot()
    artists.end_updates()
    artists.send_again(3)
    bronze.commit(ARTISTS, bronze.museum.artist_rows())
    work = bronze.museum.artwork
    bronze.commit(
        ARTWORKS,
        [
            work(3, "d", title=""),
            work(3, ""),
            work(1, "u", title="Roots", artist_id=1, height_cm="30.500"),
            work(4, "c", title="New", artist_id=25, duration_seconds="12.50"),
        ],
    )


def odd(bronze: Bronze) -> None:
    """What a test of the data would refuse, and both engines must still agree on."""
    records = bronze.records
    bronze.commit(
        SALES,
        [
            records.sale(71, None),
            records.sale(72, "0001-01-01 00:03:00"),
            records.sale(73, "9999-12-31 23:59:59"),
            records.sale(5, None, partition=1, sent_at="2026-02-01 00:00:00"),
            records.sale(74, "2026-01-02 12:00:00", amount=None, customer_id=None),
            records.sale(75, "2026-01-02 12:00:00", amount="-99999999.99"),
            records.sale(82, "2026-01-02 12:00:00") | {"payment_id": None},
        ],
    )
    bronze.commit(
        PURCHASES,
        [
            records.purchase("CS01", None),
            records.purchase("CS01", "2026-01-02 12:00:00", quantity=None),
            records.purchase("SF01", "2026-01-02 12:00:00", total_purchase=None),
            records.purchase("SF01", "2026-01-02 12:00:01", member_discount="0.15"),
            records.purchase("SF01", "2026-01-02 12:00:02") | {"product_id": None},
        ],
    )
    bronze.commit(
        PRODUCTS,
        [
            records.product("IS01", "2026-01-02 00:00:00", event_time=None, price=None),
            records.product("IS01", "2026-01-02 00:00:00", item=None, cogs="2.21"),
        ],
    )
    bronze.commit(
        INVENTORIES, [records.movement("CS01", "2026-01-04 00:00:00") | {"event_time": None}]
    )
    # The ingest at its worst: a record lost, some twice, one that is in no commit.
    kept = records.sale(76, "2026-01-04 10:00:00")
    lost = records.sale(77, "2026-01-04 10:00:00")
    bronze.commit(SALES, [kept, lost, records.sale(78, "2026-01-04 10:00:00")])
    rows = bronze.steps[-2]["rows"]
    rows[:] = [row for row in rows if row["payment_id"] != 77]
    bronze.commit(SALES, [records.sale(79, "2026-01-04 10:00:00")])
    bronze.steps[-2]["rows"].append(kept)
    bought = records.purchase("CS01", "2026-01-02 15:00:00")
    listed = records.product("IS01", "2026-01-03 00:00:00", price="5.99")
    for _ in range(2):
        bronze.commit(PURCHASES, [bought])
        bronze.commit(PRODUCTS, [listed])
    bronze.unlogged(SALES, [records.sale(80, "2026-01-04 10:00:00", partition=7)])
    newest = records.sale(81, "2026-01-04 10:00:00")
    # A tombstone of an unknown row, and one that deletes by itself.
    work = bronze.museum.artwork
    bronze.commit(ARTWORKS, [work(77, ""), work(4, "")])
    bronze.commit(SALES, [newest])
    bronze.give_up(SALES, newest, 3)


def _unreadable(records: Records) -> Row:
    return records.sales.record(0, None)


def _tombstone(records: Records) -> Row:
    record = records.sales.record(0, "2026-01-04 00:00:00")
    return record | {"_is_tombstone": True, "_key": 7}
