"""Converts frames of a table's rows to Parquet files, in tasks or in the driver.

A frame is an Arrow IPC stream of the table's columns and the partition's. In tasks this runs in
Spark's Python workers, which require only pyarrow: the module is pickled by value.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# Maximum bytes that are passed to the JVM at once.
_PART_BYTES = 8 * 2**20
# Buffer limit of all open files of a task; beyond it the largest is written.
_MAX_BUFFERED = 256 * 2**20
_FLOATS = ("float", "double")


@dataclass(frozen=True)
class Format:
    """The format of a table's Parquet files.

    Attributes:
        schema: Iceberg's schema as JSON.
        partition: Names of the columns with the partition's values, in order.
        codec: Compression codec, by Arrow's name.
        level: Compression level; None for the codec's default.
        dictionary_bytes: Maximum bytes of a column's dictionary.
        page_bytes: Approximate bytes of a data page.
        group_bytes: Approximate bytes of a row group in memory.
        file_bytes: Approximate maximum bytes of a file.
    """

    schema: str
    partition: tuple[str, ...]
    codec: str
    level: int | None
    dictionary_bytes: int
    page_bytes: int
    group_bytes: int
    file_bytes: int


def parquet_parts(form: Format) -> Callable[[Iterable[bytes]], Iterator[bytes]]:
    """The function that converts a task's frames to parts of files.

    It returns a header, then bytes, for each part. The header is an Arrow IPC stream of one
    row: the file's number within the task; ``rows``, ``splits`` and ``nans`` (rows, split offsets
    and NaN counts by field id), null before the file's last part; then the partition's values.
    """

    def run(frames: Iterable[bytes]) -> Iterator[bytes]:
        # Spark already runs a worker per core.
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
        files = _Files(form)
        for frame in frames:
            for rows in pa.ipc.open_stream(frame):
                yield from files.add(rows)
        yield from files.finish()

    return run


def arrow_schema(text: str) -> Any:
    """A ``pyarrow.Schema`` with Iceberg's field ids, from an Iceberg schema as JSON.

    Source: Iceberg's specification, appendix A (Parquet) and C (JSON).
    """
    return pa.schema(_arrow_struct(json.loads(text)))


def _arrow_struct(struct: Mapping[str, Any]) -> Any:
    return pa.struct([_arrow_field(f["name"], f["id"], f["type"]) for f in struct["fields"]])


def _arrow_field(name: str, number: int, kind: Any, *, nullable: bool = True) -> Any:
    return pa.field(name, _arrow_type(kind), nullable, {"PARQUET:field_id": str(number)})


def _arrow_type(kind: Any) -> Any:
    if isinstance(kind, dict):
        if kind["type"] == "struct":
            return _arrow_struct(kind)
        if kind["type"] == "list":
            return pa.list_(_arrow_field("element", kind["element-id"], kind["element"]))
        key = _arrow_field("key", kind["key-id"], kind["key"], nullable=False)
        return pa.map_(key, _arrow_field("value", kind["value-id"], kind["value"]))
    if kind.startswith("decimal"):
        precision, scale = json.loads(kind.removeprefix("decimal").translate({40: 91, 41: 93}))
        return pa.decimal128(precision, scale)
    return {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", tz="UTC"),
        "string": pa.string(),
        "binary": pa.binary(),
    }[kind]


@dataclass
class _File:
    """An open file: its buffered rows, and the bytes written so far."""

    number: int
    partition: tuple[Any, ...]
    buffered: list[Any] = field(default_factory=list)
    buffered_bytes: int = 0
    rows: int = 0
    written: int = 0
    nans: dict[int, int] = field(default_factory=dict)
    writer: Any = None
    parts: list[bytes] = field(default_factory=list)

    # Required by Arrow for a Python file.
    closed = False

    def write(self, data: Any) -> int:
        whole = bytes(data)
        self.parts += [whole[at : at + _PART_BYTES] for at in range(0, len(whole), _PART_BYTES)]
        self.written += len(whole)
        return len(whole)

    def tell(self) -> int:
        return self.written

    def flush(self) -> None:
        """Do nothing: writes are not buffered."""


class _Files:
    """The files of a task, with one open file per partition."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self._schema = arrow_schema(form.schema)
        self._floats = {name: ids for name, ids in _float_ids(form.schema) if ids}
        self._open: dict[tuple[Any, ...], _File] = {}
        self._count = 0
        self._buffered_bytes = 0
        self._headers: Any = None

    def add(self, batch: Any) -> Iterator[bytes]:
        """Add rows; yields parts of the files that are large enough."""
        if self._headers is None:
            kinds = [batch.schema.field(name) for name in self._form.partition]
            self._headers = pa.schema(
                [
                    ("file", pa.int32()),
                    ("rows", pa.int64()),
                    ("splits", pa.list_(pa.int64())),
                    ("nans", pa.map_(pa.int32(), pa.int64())),
                    *((kind.name, kind.type) for kind in kinds),
                ]
            )
        for partition, rows in self._by_partition(batch):
            if partition not in self._open:
                self._count += 1
                self._open[partition] = _File(self._count, partition)
            file = self._open[partition]
            table = self._conformed(rows)
            file.buffered.append(table)
            file.buffered_bytes += table.nbytes
            file.rows += rows.num_rows
            self._buffered_bytes += table.nbytes
            for name, ids in self._floats.items():
                for number, count in _nan_counts(table[name], ids):
                    file.nans[number] = file.nans.get(number, 0) + count
            if file.buffered_bytes >= self._form.group_bytes:
                yield from self._write(file)
            while self._buffered_bytes >= _MAX_BUFFERED:
                yield from self._write(max(self._open.values(), key=lambda f: f.buffered_bytes))

    def finish(self) -> Iterator[bytes]:
        """The last parts of all files."""
        for file in list(self._open.values()):
            yield from self._close(file)

    def _by_partition(self, batch: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """All rows of a batch, by the values of their partition."""
        names = list(self._form.partition)
        keys = pa.Table.from_batches([batch.select(names)])
        found = keys.group_by(names).aggregate([]).to_pylist() if names else [{}]
        if batch.num_rows and len(found) == 1:
            yield tuple(found[0][name] for name in names), batch
        elif batch.num_rows:
            numbered = keys.append_column("row", pa.array(range(batch.num_rows)))
            groups = numbered.group_by(names).aggregate([("row", "list")])
            for group in groups.to_pylist():
                yield tuple(group[name] for name in names), batch.take(group["row_list"])

    def _conformed(self, batch: Any) -> Any:
        columns = [
            column if column.type == kind.type else column.cast(kind.type)
            for kind in self._schema
            for column in [batch[kind.name]]
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _write(self, file: _File) -> Iterator[bytes]:
        """Write the buffered rows as a row group, and close a full file; yields its parts."""
        self._flush(file)
        if file.written >= self._form.file_bytes:
            yield from self._close(file)
        else:
            yield from self._parts(file)

    def _close(self, file: _File) -> Iterator[bytes]:
        """Close a file; yields its last parts."""
        self._flush(file)
        del self._open[file.partition]
        file.writer.close()
        footer = file.writer.writer.metadata
        splits = [_begin(footer.row_group(i).column(0)) for i in range(footer.num_row_groups)]
        yield from self._parts(file, file.rows, splits, list(file.nans.items()))

    def _flush(self, file: _File) -> None:
        if not file.buffered:
            return
        form = self._form
        if file.writer is None:
            file.writer = pq.ParquetWriter(
                pa.PythonFile(file, mode="w"),
                self._schema,
                compression=form.codec,
                compression_level=form.level,
                # Iceberg's spec: decimals of up to 18 digits are integers.
                store_decimal_as_integer=True,
                store_schema=False,
                dictionary_pagesize_limit=form.dictionary_bytes,
                data_page_size=form.page_bytes,
            )
        table = pa.Table.from_batches(file.buffered, self._schema)
        file.writer.write_table(table, row_group_size=table.num_rows)
        self._buffered_bytes -= file.buffered_bytes
        file.buffered, file.buffered_bytes = [], 0

    def _parts(self, file: _File, *end: Any) -> Iterator[bytes]:
        """The new bytes of a file, with headers; ``end`` has the statistics for the last part."""
        written, file.parts = deque(file.parts), []
        while written:
            part, size = [], 0
            while written and size + len(written[0]) <= _PART_BYTES:
                part.append(written.popleft())
                size += len(part[-1])
            known = end if end and not written else (None, None, None)
            values = [file.number, *known, *file.partition]
            columns = [
                pa.array([value], kind.type)
                for value, kind in zip(values, self._headers, strict=True)
            ]
            yield ipc_stream(pa.RecordBatch.from_arrays(columns, schema=self._headers))
            yield b"".join(part)


def ipc_stream(batch: pa.RecordBatch) -> bytes:
    """A record batch as an Arrow IPC stream."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(buffer.getvalue())


def _begin(chunk: Any) -> int:
    """The offset of a column chunk, which is Iceberg's split offset."""
    dictionary = chunk.dictionary_page_offset
    return int(chunk.data_page_offset if dictionary is None else dictionary)


def _float_ids(text: str) -> Iterator[tuple[str, Any]]:
    """The field ids of floating-point values by column, for :func:`_nan_counts`."""
    for each in json.loads(text)["fields"]:
        yield each["name"], _ids_in(each["id"], each["type"])


def _ids_in(number: int, kind: Any) -> Any:
    """A field id, or those of a struct's fields by name; None without floating-point values.

    Iceberg has no counts for lists and maps.
    """
    if isinstance(kind, dict):
        if kind["type"] != "struct":
            return None
        inside = {f["name"]: _ids_in(f["id"], f["type"]) for f in kind["fields"]}
        return {name: ids for name, ids in inside.items() if ids} or None
    return number if kind in _FLOATS else None


def _nan_counts(column: Any, ids: Any) -> Iterator[tuple[int, int]]:
    if isinstance(ids, int):
        yield ids, pc.sum(pc.is_nan(column)).as_py() or 0
        return
    for name, inner in ids.items():
        yield from _nan_counts(pc.struct_field(column, name), inner)
