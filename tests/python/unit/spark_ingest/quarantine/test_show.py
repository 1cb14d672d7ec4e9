"""Quarantine as people and programs read it."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import Row

from spark_ingest.cli.quarantine import Format, print_groups, replayed_lines, write_value
from spark_ingest.errors import ConfigurationError
from spark_ingest.quarantine.replay import Replayed
from spark_ingest.quarantine.show import Group, screen

GROUP = Group(
    "shop.sales", "shop.sales.avro", "size", "oversized", 1200, 0, 3, "0:1", "1:9",
    "2026-01-01 00:00:00.000", "2026-01-02 00:00:00.000", 'a, "b"',
)  # fmt: skip
ROW = Row(
    _kafka_topic="t",
    _kafka_topic_id="T",
    _kafka_partition=1,
    _kafka_offset=17,
    _kafka_timestamp="2026-01-01 00:00:00.000",
    _kafka_key=None,
    _kafka_value=bytearray(b"\x00abc\xff" * 1000),
    _kafka_headers=[Row(key=f"h{i}", value=bytearray(b"v")) for i in range(9)],
    _schema_id=None,
    stage="framing",
    error_class="not_framed",
    error_message="no\nframing " * 200,
    _ingested_at="2026-01-02 00:00:00.000",
    replayed_at=None,
    discarded_at="2026-01-03 00:00:00.000",
    discard_reason="noise",
)


def test_a_list_is_for_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    print_groups([GROUP], Format.JSON)
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["open"], one["sample"]) == (1200, 'a, "b"')
    print_groups([GROUP], Format.CSV)
    (one,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (one["error_class"], one["sample"]) == ("oversized", 'a, "b"')
    print_groups([GROUP], Format.TABLE)
    assert "1,200" in capsys.readouterr().out
    print_groups([], Format.TABLE)
    assert capsys.readouterr().out == "no open record in quarantine\n"
    print_groups([], Format.JSON)
    assert capsys.readouterr().out == "[]\n"


def test_a_record_fits_on_a_screen() -> None:
    lines = screen(ROW, 3)
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 320
    assert "schema id  none" in lines
    assert "discarded  2026-01-03 00:00:00.000 UTC: noise" in lines
    assert "           and 4 more headers" in lines
    assert "key        null" in lines
    assert "value      5,000 bytes" in lines
    first = lines[lines.index("value      5,000 bytes") + 1]
    assert first.split("   ")[1].startswith("00 61 62 63 ff 00")
    assert first.endswith(" .abc..abc..abc..")
    assert "           and 4,840 more bytes: --out FILE writes them" in lines
    assert lines[-1] == "This is the newest of 3 records."


def test_a_values_bytes_are_written_as_they_came(tmp_path: Path) -> None:
    out = tmp_path / "value"
    write_value(b"\x00\xff", out)
    assert out.read_bytes() == b"\x00\xff"
    with pytest.raises(ConfigurationError, match="value is null"):
        write_value(None, out)
    with pytest.raises(ConfigurationError, match=r"--out .*: No such file"):
        write_value(b"", tmp_path / "no" / "value")


@pytest.mark.parametrize(
    ("commits", "dry_run", "said"),
    [
        ([5], False, "s.t: 12 replayed in commit 5"),
        ([5, 6, 8], False, "s.t: 12 replayed in commits 5 to 8"),
        ([], True, "s.t: 12 would be replayed"),
    ],
)
def test_a_replay_says_what_it_did(commits: list[int], dry_run: bool, said: str) -> None:
    done = Replayed("s.t", 12, 0, Counter(undecodable=1000), commits)
    assert replayed_lines(done, dry_run) == [said, "  1,000 stay in quarantine: undecodable"]
    assert replayed_lines(Replayed("s.t"), dry_run) == ["s.t: nothing to replay"]
