"""The emulator's process: PostgreSQL, the proxy in front of it, and access to the lake.

``python -m sandbox.services.redshift.server SANDBOX_HOME``; `sandbox up redshift` runs it.
"""

from __future__ import annotations

import asyncio
import signal
import struct
import sys
from asyncio import StreamReader, StreamWriter

from sandbox.services import postgres_programs
from sandbox.services.redshift.dialect import to_postgres
from sandbox.services.redshift.lake import Lake
from sandbox.services.redshift.wire import Session
from sandbox.settings import Home, load_home
from spark_ingest.errors import MillraceError

_PIECE = struct.Struct("!i")


async def serve(home: Home, lake: Lake) -> None:
    """Accept connections until the process is stopped."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    session = Session(
        translate=lambda sql: to_postgres(sql, lake.listing),
        opening=lambda: f"select rs.sync_external($listing${lake.listing()}$listing$)",
        port=home.ports["redshift-postgres"],
    )
    await asyncio.start_server(
        lambda reader, writer: answer_scan(lake, reader, writer),
        "127.0.0.1",
        home.ports["redshift-lake"],
    )
    await asyncio.start_server(session.serve, "127.0.0.1", home.ports["redshift"])
    await stopping.wait()


async def answer_scan(lake: Lake, reader: StreamReader, writer: StreamWriter) -> None:
    """Send ``scan.py`` the requested rows."""
    try:
        request = (await reader.readline()).decode().rstrip("\n")
        table, *columns = request.split("\t")
        database, name = table.rsplit(".", 1)
        rows = lake.rows(database, name, columns)
        while True:
            # Any error must be reported by the query.
            [piece] = await asyncio.gather(
                asyncio.to_thread(next, rows, b""), return_exceptions=True
            )
            if isinstance(piece, BaseException):
                words = f"{type(piece).__name__}: {piece}".encode()
                writer.write(_PIECE.pack(-len(words)) + words)
                return
            writer.write(_PIECE.pack(len(piece)) + piece)
            if not piece:
                return
            await writer.drain()
    except ConnectionError:
        pass  # PostgreSQL has read enough rows
    finally:
        writer.close()


def main(home: Home) -> None:
    """Run PostgreSQL and the proxy."""
    folder = home.services / "redshift"
    port = home.ports["redshift-postgres"]
    with postgres_programs.programs(folder) as programs:
        database = postgres_programs.start("redshift", port, folder / "data", programs)
        try:
            asyncio.run(serve(home, Lake(home.lake)))
        finally:
            postgres_programs.end(database)


if __name__ == "__main__":
    try:
        # The ports are in the settings, which `up` has written.
        main(load_home({"SANDBOX_HOME": sys.argv[1]}))
    except MillraceError as error:
        sys.exit(str(error))
