"""The proxy between Redshift's driver and PostgreSQL, message by message.

PostgreSQL's frontend/backend protocol 3.0, which Redshift uses too. Three things are changed:
the startup message, each statement, and the server version.
"""

from __future__ import annotations

import asyncio
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable

from sandbox.services.redshift.refusals import NotRedshift
from spark_ingest.errors import MillraceError

_LENGTH = struct.Struct("!i")
_ENCRYPTION_REQUESTS = {80877103, 80877104}
_PROTOCOL_3 = 196608
# Startup parameters that PostgreSQL knows; Redshift's driver sends more.
_KNOWN = {b"user", b"database", b"application_name", b"client_encoding"}
# The version that Redshift reports: it is derived from that version.
_SERVER_VERSION = b"server_version\0008.0.2\0"

Translate = Callable[[str], str]


class Session:
    """One connection of a driver.

    ``translate`` translates a statement, ``opening`` returns one to run before the driver's
    first; PostgreSQL listens on ``port``.
    """

    def __init__(self, translate: Translate, opening: Callable[[], str], port: int) -> None:
        self._translate = translate
        self._opening = opening
        self._port = port

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Forward messages both ways until one side closes."""
        writers = [writer]
        try:
            kind, body = await _greeting(reader, writer)
            server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
            writers.append(to_server)
            await _send(to_server, b"", _LENGTH.pack(kind) + _known(kind, body))
            if kind == _PROTOCOL_3:
                await self._authenticate(reader, writer, server, to_server)
                ways = {
                    asyncio.create_task(self._forward(reader, to_server)),
                    asyncio.create_task(_copy(server, writer)),
                }
                done, rest = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in rest:
                    way.cancel()
                await asyncio.gather(*done, *rest, return_exceptions=True)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # either side may leave at any time
        finally:
            for each in writers:
                each.close()

    async def _authenticate(
        self,
        reader: StreamReader,
        writer: StreamWriter,
        server: StreamReader,
        to_server: StreamWriter,
    ) -> None:
        """Forward the startup responses until the server is ready for a query."""
        async for kind, body in _messages(server):
            if kind == b"Z":
                await self._open(server, writer, to_server)
            is_version = kind == b"S" and body.startswith(b"server_version\0")
            await _send(writer, kind, _SERVER_VERSION if is_version else body)
            # Every authentication request except AuthenticationOk (0) gets one response.
            if kind == b"R" and _LENGTH.unpack(body[:4])[0] != 0:
                await _send(to_server, *await _message(reader))
            if kind in (b"Z", b"E"):
                return

    async def _open(
        self, server: StreamReader, writer: StreamWriter, to_server: StreamWriter
    ) -> None:
        """Run the opening statement; only its errors are forwarded to the driver."""
        await _send(to_server, b"Q", self._opening().encode() + b"\0")
        async for kind, body in _messages(server):
            if kind == b"E":
                await _send(writer, kind, body)
            if kind == b"Z":
                return

    async def _forward(self, reader: StreamReader, to_server: StreamWriter) -> None:
        """Forward the driver's messages, with translated statements."""
        async for kind, body in _messages(reader):
            await _send(to_server, kind, self._rewritten(kind, body))

    def _rewritten(self, kind: bytes, body: bytes) -> bytes:
        if kind == b"Q":
            return self._said(body[:-1]) + b"\0"
        if kind == b"P":
            name, statement, types = body.split(b"\0", 2)
            return b"\0".join([name, self._said(statement), types])
        return body

    def _said(self, statement: bytes) -> bytes:
        """Replace a rejected statement by one that fails, so that the protocol continues."""
        sql = statement.decode()
        try:
            return self._translate(sql).encode()
        except NotRedshift as refused:
            words = str(refused)
        except (MillraceError, ValueError, LookupError) as broken:
            words = f"the emulator failed: {type(broken).__name__}: {broken}"
        print(f"refused: {words}\n  {sql}", flush=True)
        message = f"Redshift emulator: {words}".replace("'", "''").replace("$", "")
        return (
            "do $refused$ begin raise exception using"
            f" message = '{message}', errcode = '42601'; end $refused$"
        ).encode()


async def _greeting(reader: StreamReader, writer: StreamWriter) -> tuple[int, bytes]:
    """The driver's first message after encryption requests: its kind and body."""
    while True:
        size, kind = struct.unpack("!ii", await reader.readexactly(8))
        if kind not in _ENCRYPTION_REQUESTS:
            return kind, await reader.readexactly(size - 8)
        writer.write(b"N")
        await writer.drain()


def _known(kind: int, body: bytes) -> bytes:
    if kind != _PROTOCOL_3:
        return body
    parts = body.split(b"\0")
    pairs = zip(parts[0::2], parts[1::2], strict=False)
    return b"".join(b"%b\0%b\0" % pair for pair in pairs if pair[0] in _KNOWN) + b"\0"


async def _message(reader: StreamReader) -> tuple[bytes, bytes]:
    kind = await reader.readexactly(1)
    (size,) = _LENGTH.unpack(await reader.readexactly(4))
    return kind, await reader.readexactly(size - 4)


async def _messages(reader: StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    while True:
        yield await _message(reader)


async def _send(writer: StreamWriter, kind: bytes, body: bytes) -> None:
    writer.write(kind + _LENGTH.pack(len(body) + 4) + body)
    await writer.drain()


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()
