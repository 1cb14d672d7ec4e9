"""The ingest benchmark's own arithmetic: what it sends, counts, times and shows."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import fastavro
import pytest

from bench.ingest import load
from bench.ingest.__main__ import BENCHMARK, chosen
from bench.ingest.latency import Produced, waits
from bench.ingest.load import PERIOD, Sent, Shape, payloads, records, schemas
from bench.ingest.losses import METADATA, Landed, losses
from bench.ingest.peer_systems import consumer_span
from bench.ingest.results import Load, Run, comparison
from bench.ingest.system_run import Output
from bench.ingest.usage import Sample, percentile, usage
from bench.ingest.watch import Seen
from bench.report.page import table_lines, with_results
from bench.report.results import Results
from sandbox.settings import PROJECT
from spark_ingest.errors import ConfigurationError
from tests.python.unit.bench.measured import about

IDS = (7, 9)
FIELDS = [field["name"] for field in schemas(Shape())[1]["fields"]]
LOAD = Load(Sent(1000, 133_000, Counter(tombstone=1, garbage=5)), fields=15, partitions=4)


@cache
def one_period() -> list[tuple[int, bytes, bytes | None, str]]:
    return list(records(payloads(Shape(), 1, IDS, 2000), 0, PERIOD))


def decoded(value: bytes) -> tuple[dict[str, object], int]:
    """A value by the schema that it names, and how many bytes were left over."""
    schema = schemas(Shape())[IDS.index(int.from_bytes(value[1:5], "big"))]
    rest = io.BytesIO(value[5:])
    row = fastavro.schemaless_reader(rest, fastavro.parse_schema(schema), None)
    assert isinstance(row, dict)
    return row, len(rest.read())


def run(seconds: float) -> Run:
    return Run(1000, seconds, 2.0, 100.0, 0.5, "nothing")


def measured(**runs: list[Run]) -> Results:
    """A comparison of Millrace, and of the careless job if it takes part."""
    names = {"millrace": "millrace", "careless": "careless spark job"}
    by_name = {names[name]: its for name, its in runs.items()}
    return comparison(by_name, LOAD, about("ingest", minutes=3))


def landed(
    rows: int,
    set_aside: int = 0,
    empty: int = 0,
    fields: frozenset[str] = frozenset(FIELDS),
    metadata: frozenset[str] = frozenset(METADATA),
    marks_tombstones: bool = True,
    is_table: bool = True,
    numbers: frozenset[str] = frozenset(),
) -> Landed:
    return Landed(rows, empty, set_aside, fields, metadata, marks_tombstones, is_table, numbers)


def sent() -> Sent:
    return Sent(10, 1330, Counter(good=7, tombstone=1, garbage=2))


def test_records_have_the_size_and_the_fields_that_were_asked_for() -> None:
    good = [value for _, _, value, kind in one_period() if value and kind == "good"]
    assert sum(map(len, good)) / len(good) == pytest.approx(133, abs=3)
    assert len(FIELDS) == 15
    assert len(schemas(Shape(5))[1]["fields"]) == 5
    assert len(schemas(Shape(60))[1]["fields"]) == 60
    large = payloads(Shape(value_bytes=10_000), 1, IDS, 300)
    assert sum(map(len, large)) / len(large) == pytest.approx(10_000, rel=0.02)


def test_no_two_records_are_alike_and_half_name_each_schema() -> None:
    sent_records = one_period()
    assert len({value for _, _, value, kind in sent_records if kind == "good"}) > 9990
    assert {len(key) for _, key, _, _ in sent_records} == {18}
    named = Counter(value[4] for _, _, value, kind in sent_records if value and kind == "good")
    assert named[IDS[0]] == pytest.approx(named[IDS[1]], abs=10)


def test_good_records_decode_to_their_last_byte_and_bad_ones_do_not() -> None:
    for number, _, value, kind in one_period():
        if kind == "good" and number % 100 == 0:
            assert value is not None
            row, left = decoded(value)
            assert (row["receipt_number"], left) == (f"{number:016}", 0)
        elif kind == "tombstone":
            assert value is None
        elif kind == "not framed":
            assert value is not None
            assert value[0] != 0
        elif kind in load.BAD:
            assert value is not None
            try:
                assert decoded(value)[1] > 0
            except (EOFError, ValueError, IndexError, KeyError, TypeError):
                continue


def test_each_kind_of_bad_record_is_there_once_in_a_period() -> None:
    kinds = Counter(kind for _, _, _, kind in one_period())
    assert {kind: kinds[kind] for kind in load.BAD} == dict.fromkeys(load.BAD, 1)
    assert kinds["tombstone"] == 1


def test_nothing_is_lost_when_every_record_is_a_row_or_set_aside() -> None:
    assert losses(landed(8, set_aside=2), sent(), FIELDS) == "nothing"


@pytest.mark.parametrize(
    ("there", "lost"),
    [
        (landed(7, set_aside=2), "1 records"),
        (landed(9, set_aside=2), "1 records are there twice"),
        (landed(10, empty=2, marks_tombstones=False), "2 records became rows of nulls"),
        (landed(8, set_aside=2, metadata=frozenset({"key"})), "headers, position"),
        (landed(8, set_aside=2, fields=frozenset(FIELDS[:-1])), "field channel"),
        (landed(8, set_aside=2, is_table=False), "no table"),
        (landed(8, set_aside=2, numbers=frozenset({"sold_at"})), "sold_at no time"),
    ],
)
def test_what_is_lost_is_said(there: Landed, lost: str) -> None:
    assert lost in losses(there, sent(), FIELDS)


def test_bad_records_that_pass_as_good_are_counted() -> None:
    # A row of nulls for the tombstone; both bad ones look like rows.
    there = landed(10, empty=1, marks_tombstones=False)
    assert "2 bad records pass as good" in losses(there, sent(), FIELDS)


def test_usage_between_two_samples_is_a_straight_line() -> None:
    samples = [Sample(10.0, 5.0, 300), Sample(20.0, 15.0, 900), Sample(30.0, 15.0, 100)]
    took = usage(samples, 15.0, 25.0)
    assert (took.seconds, took.cpu_seconds, took.peak_rss_bytes) == (10.0, 5.0, 900)


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.95, 0.99)] == [50, 95, 99]
    assert percentile([3.0], 0.95) == 3.0


def test_a_record_waits_until_the_first_state_that_holds_it() -> None:
    produced = [Produced(0, 1.0), Produced(1, 1.5), Produced(0, 2.0), Produced(0, 9.0)]
    seen = [
        Seen(3.0, 1, 2, {"millrace.end-offsets": json.dumps({"0": 1, "1": 1})}),
        Seen(5.0, 2, 3, {"millrace.end-offsets": json.dumps({"0": 2, "1": 1})}),
    ]
    assert waits(produced, seen) == [1.5, 2.0, 3.0]


def test_the_measuring_consumer_shows_its_time_without_its_start() -> None:
    lines = [
        "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg, nMsg.sec, rebalance, fetch",
        "2026-01-02 03:04:05:500, 2026-01-02 03:04:09:000, 1, 1, 1000, 1, 1500, 2000, 1, 1",
    ]
    span = consumer_span(lines)
    assert span is not None
    assert span[1] - span[0] == pytest.approx(2.0)
    assert consumer_span(lines[:1]) is None


def test_rates_are_compared_round_by_round() -> None:
    results = measured(
        millrace=[run(1.0), run(4.0), run(3.0)], careless=[run(2.0), run(4.0), run(3.0)]
    )
    table = results.table("ingest")
    mine = table.column("system").index("**millrace**")
    assert table.column("times the careless job")[mine] == 1.0
    assert table.column("records/s")[mine] == 333
    assert table.column("CPU s per million")[mine] == 2000


def test_without_the_careless_job_there_is_no_ratio() -> None:
    table = measured(millrace=[run(1.0)]).table("ingest")
    assert table.column("times the careless job") == [""]


def test_a_program_shows_when_it_begins() -> None:
    output = Output([(1.0, "noise\n"), (2.0, '{"bench": "begin", "at": 1.9}\n')])
    assert output.mark("begin") == 1.9
    assert output.mark("end") is None
    assert output.moment("noise") == 1.0


def test_the_page_keeps_what_was_not_measured() -> None:
    results = measured(millrace=[run(2.0)], careless=[run(1.0)])
    text = (PROJECT / "docs/performance.md").read_text()
    written = with_results(text, results)
    assert "\n".join(table_lines(results.table("ingest"))) in written
    increments = re.compile(r"<!-- generated: increments -->.*?<!-- /generated -->", re.DOTALL)
    assert increments.findall(written) == increments.findall(text)
    assert with_results(written, results) == written


def test_the_fastest_stands_first_and_ours_stands_out() -> None:
    results = measured(millrace=[run(2.0)], careless=[run(1.0)])
    table = table_lines(results.table("ingest"))
    assert table[2].startswith("| careless spark job | 1,000 |")
    assert table[3].startswith("| **millrace** | 500 |")


def test_contestants_are_chosen_by_a_part_of_their_name() -> None:
    assert [each.name for each in chosen(["raw", "mill"], [])] == ["limit raw consumer", "millrace"]
    with pytest.raises(ConfigurationError, match=r"--only horse: no such system"):
        chosen(["horse"], [])


def test_results_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="make bench"):
        BENCHMARK.read(tmp_path / "none.json")
    (tmp_path / "a.json").write_text('{"parts": 1}')
    with pytest.raises(ConfigurationError, match="run it again"):
        BENCHMARK.read(tmp_path / "a.json")
