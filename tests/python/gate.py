"""A proxy before an HTTP service of the tests: it holds, loses and refuses requests."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_SECONDS = 60
# Of one connection, or of a body that is sent again in one piece.
_NOT_PASSED_ON = {"connection", "transfer-encoding", "content-length", "keep-alive"}


@dataclass(frozen=True)
class Request:
    """What a client asked."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What a client gets."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, eq=False)
class _Rule:
    wanted: Callable[[Request], bool]
    # None: the answer is lost on its way.
    treat: Callable[[Request], Answer | None]
    is_once: bool


@dataclass
class Held:
    """A request on its way.

    Attributes:
        arrived: Set when it is at the gate.
        released: Set it to let it through.
    """

    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


class Gate:
    """The proxy; :func:`gate` makes one.

    Attributes:
        address: Where it listens.
        service: The address of the service behind it.
    """

    def __init__(self, port: int, address: str) -> None:
        self.address = address
        self.service = f"http://127.0.0.1:{port}"
        self._port = port
        self._rules: list[_Rule] = []
        self._choosing = threading.Lock()

    def pass_on(self, request: Request) -> Answer:
        """What the service says."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            headers = {
                name: value
                for name, value in request.headers.items()
                if name.lower() not in _NOT_PASSED_ON
            }
            connection.request(request.method, request.path, request.body, headers)
            got = connection.getresponse()
            return Answer(got.status, dict(got.getheaders()), got.read())
        finally:
            connection.close()

    def treat(
        self, wanted: Callable[[Request], bool], treat: Callable[[Request], Answer | None]
    ) -> None:
        """Treat the next request of a kind otherwise; None for an answer that is lost."""
        with self._choosing:
            self._rules.append(_Rule(wanted, treat, is_once=True))

    @contextmanager
    def treating(
        self, wanted: Callable[[Request], bool], treat: Callable[[Request], Answer | None]
    ) -> Iterator[None]:
        """Treat all requests of a kind otherwise for a while; the newest rule counts."""
        rule = _Rule(wanted, treat, is_once=False)
        with self._choosing:
            self._rules.append(rule)
        try:
            yield
        finally:
            with self._choosing:
                self._rules.remove(rule)

    def hold(self, wanted: Callable[[Request], bool]) -> Held:
        """Hold the next request of a kind before the service gets it."""
        held = Held()

        def wait(request: Request) -> Answer | None:
            held.arrived.set()
            assert held.released.wait(_SECONDS), "nobody released the request"
            return self.answer(request)

        self.treat(wanted, wait)
        return held

    def lose_answer(self, wanted: Callable[[Request], bool]) -> None:
        """Let the next request of a kind through, and lose what the service says to it."""

        def lose(request: Request) -> None:
            self.answer(request)

        self.treat(wanted, lose)

    def answer(self, request: Request) -> Answer | None:
        """What becomes of a request."""
        with self._choosing:
            rules = [rule for rule in reversed(self._rules) if rule.wanted(request)]
            rule = rules[0] if rules else None
            if rule is not None and rule.is_once:
                self._rules.remove(rule)
        return self.pass_on(request) if rule is None else rule.treat(request)


@contextmanager
def gate(port: int) -> Iterator[Gate]:
    """A gate before the service at a port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one packet: else the client's delayed ACK holds each body for 40 ms.
        wbufsize = -1

        def handle_one_request(self) -> None:
            # A client that ends, or an answer that it did not wait for, is its own affair.
            with suppress(ConnectionError):
                super().handle_one_request()

        def pass_through(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            request = Request(self.command, self.path, dict(self.headers), self.rfile.read(length))
            answer = made.answer(request)
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in {*_NOT_PASSED_ON, "date", "server"}:
                    self.send_header(name, value)
            # HEAD answers with the length of the body that GET would have.
            if answer.status != 204:
                is_head = self.command == "HEAD"
                size = answer.headers.get("Content-Length", "0") if is_head else len(answer.body)
                self.send_header("Content-Length", str(size))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """The tests' output is not for it."""

    for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.pass_through)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made = Gate(port, f"http://127.0.0.1:{server.server_port}")
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
