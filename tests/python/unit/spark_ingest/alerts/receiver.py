"""A webhook's receiver on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@dataclass
class Receiver:
    """What came, and where it listens.

    Attributes:
        url: Its address.
        answers: The statuses that it gives, one after the other; then always 200.
        bodies: The JSON of each request, those that it refused too.
    """

    url: str
    answers: list[int]
    bodies: list[Any] = field(default_factory=list)


@contextmanager
def receiving(answers: Sequence[int] = ()) -> Iterator[Receiver]:
    """A receiver that answers as reported."""
    receiver = Receiver("", list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            receiver.bodies.append(json.loads(self.rfile.read(length)))
            self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
