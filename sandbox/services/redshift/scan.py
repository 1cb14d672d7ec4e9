"""Fetch the rows of an external table from the emulator's server; run by PostgreSQL.

A separate program that uses only the standard library, because it starts for each scan.
Arguments: the server's port on 127.0.0.1, the table, its columns. The response consists of
length-prefixed chunks; length 0 marks the end, and a negative length an error message.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

PIECE = struct.Struct("!i")


def main(port: int, names: list[str]) -> None:
    """Write the rows as CSV to standard output."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall("\t".join(names).encode() + b"\n")
        with server.makefile("rb") as answer:
            while True:
                (size,) = PIECE.unpack(answer.read(PIECE.size))
                if size == 0:
                    return
                piece = answer.read(abs(size))
                if size < 0:
                    sys.exit(piece.decode())
                sys.stdout.buffer.write(piece)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), sys.argv[2:])
        sys.stdout.flush()
    except BrokenPipeError:  # PostgreSQL has read enough rows
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
