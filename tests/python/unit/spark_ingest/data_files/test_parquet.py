"""What a task makes of frames, without Spark.

Fails when a worker needs this package, or holds back rows until its task ends.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle

from spark_ingest.data_files import parquet

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "id", "id": 7, "type": "long"}]})
FORM = parquet.Format(SCHEMA, ("day",), "zstd", 1, 2**16, 2**20, 2**20, 2**29)
ROWS = 1_000


def frames(count: int, days: int) -> Iterator[bytes]:
    """Frames of a thousand rows, whose days take turns; none is in no day."""
    for number in range(count):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        parts = [None if i % days == 0 else i % days for i in ids]
        rows = pa.record_batch({"id": ids, "day": pa.array(parts, pa.int32())})
        yield parquet.ipc_stream(rows)


def files(parts: Iterator[bytes]) -> dict[int, tuple[Any, Any]]:
    """The day and the rows of each file that parts make, by its number."""
    data: dict[int, bytes] = {}
    found = {}
    for header in parts:
        (row,) = pa.ipc.open_stream(header).read_all().to_pylist()
        data[row["file"]] = data.get(row["file"], b"") + next(parts)
        if row["rows"] is not None:
            table = pq.read_table(io.BytesIO(data[row["file"]]))
            assert table.num_rows == row["rows"]
            found[row["file"]] = (row["day"], table)
    assert found.keys() == data.keys()
    return found


def test_each_partition_has_a_file_of_its_own() -> None:
    made = files(parquet.parquet_parts(FORM)(frames(3, 3)))
    ids = {day: table["id"].to_pylist() for day, table in made.values()}
    assert ids == {
        day: [i for i in range(3 * ROWS) if (i % 3 or None) == day] for day in (None, 1, 2)
    }
    (_, table), *_ = made.values()
    assert table.schema.field("id").metadata == {b"PARQUET:field_id": b"7"}


def test_rows_whose_partition_is_not_a_number_are_there() -> None:
    days = [float("nan"), 1.0, float("nan"), None]
    rows = pa.record_batch({"id": [1, 2, 3, 4], "day": pa.array(days, pa.float64())})
    made = files(parquet.parquet_parts(FORM)([parquet.ipc_stream(rows)] * 2))
    ids = sorted(i for _, table in made.values() for i in table["id"].to_pylist())
    assert ids == [1, 1, 2, 2, 3, 3, 4, 4]


def test_parts_come_before_the_last_row(monkeypatch: Any) -> None:
    taken: list[Any] = []

    def counted() -> Iterator[bytes]:
        for frame in frames(400, 1):
            taken.append(frame)
            yield frame

    next(parquet.parquet_parts(FORM)(counted()))
    assert len(taken) < 200
    # So many partitions at once that none of them fills a row group.
    monkeypatch.setattr(parquet, "_MAX_BUFFERED", 2**18)
    taken.clear()
    next(parquet.parquet_parts(FORM)(counted()))
    assert len(taken) < 40


def test_a_worker_needs_pyarrow_alone(tmp_path: Path) -> None:
    by_value: Any = cloudpickle
    by_value.register_pickle_by_value(parquet)
    (tmp_path / "task").write_bytes(by_value.dumps(parquet.parquet_parts(FORM)))
    (tmp_path / "rows").write_bytes(pickle.dumps(list(frames(1, 2))))
    program = (
        "import pickle, sys; sys.modules['spark_ingest'] = None; "
        "rows = pickle.load(open('rows', 'rb')); task = pickle.load(open('task', 'rb')); "
        "print(len(list(task(rows))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "4\n"
