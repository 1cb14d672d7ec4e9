"""The rows of an external table, asked from the stand-in's server: run by PostgreSQL.

A program of its own and of the standard library alone, because it starts for each scan.
Arguments: the server's port on 127.0.0.1, the table, its columns. The answer comes in
pieces, each behind its length; a piece of length 0 is the end, and one of negative length
an error's words.
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
    except BrokenPipeError:  # PostgreSQL has the rows that it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
