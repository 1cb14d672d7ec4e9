"""Why a server does not let a client in, found out by asking it once more.

Client libraries report a wrong CA, an expired certificate and a wrong name alike, and of
plain text that meets TLS they say only that nobody is there. So when a connection fails, the
handshake is repeated here, where each of these shows.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

_SECONDS = 2.0
# A server that dislikes a certificate says so right after the handshake.
_ALERT_SECONDS = 0.5
_API_VERSIONS = 18
_METADATA = 3
_EXPIRED = 10
_NOT_YET_VALID = 9
_OTHER_NAME = (62, 64)


@dataclass(frozen=True)
class Refusal:
    """Why a connection cannot work.

    Attributes:
        key: The property to mend, in its section of the profile.
        text: What is wrong and the fix, without a secret in it.
    """

    key: str
    text: str


@dataclass(frozen=True)
class Way:
    """How a client tries to reach a server.

    Attributes:
        host: Its name or address.
        tls: Certificates by the names of Kafka properties; None for plain text.
        key: The property that holds the address.
        login: Whether a user follows the handshake, by SASL.
    """

    host: str
    port: int
    tls: Mapping[str, str] | None
    key: str
    login: bool = False

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def kafka_refusal(way: Way) -> Refusal | None:
    """Why a broker rejects this login; None where that cannot be found out, or it is down."""
    if way.tls is None:
        if _speaks_tls(way):
            wanted = "SASL_SSL" if way.login else "SASL_SSL or SSL"
            return Refusal(
                "security.protocol",
                f"{way.address} speaks TLS and is spoken to in plain text: set it to {wanted}"
                " (the sandbox: `--target secure`)",
            )
    else:
        plain = "SASL_PLAINTEXT" if way.login else "PLAINTEXT"
        no_tls = Refusal(
            "security.protocol",
            f"{way.address} speaks no TLS: set it to {plain}, or take the port of its TLS listener",
        )
        refusal = _tls_refusal(way, no_tls)
        if refusal is not None:
            return refusal
        # A broker hangs up on a handshake that it does not understand.
        if _answers_in_plain_text(way):
            return no_tls
    # Twice: a broker that is shutting down hangs up as well.
    if not way.login and all(_hangs_up(way) for _ in range(2)):
        protocol = "SASL_PLAINTEXT" if way.tls is None else "SASL_SSL"
        return Refusal(
            "security.protocol",
            f"{way.address} wants to know a user first: set it to {protocol}, with"
            " sasl.mechanism, sasl.username and sasl.password",
        )
    return None


def web_refusal(way: Way) -> Refusal | None:
    """Why a web server rejects this login; None where that cannot be found out, or it is down."""
    if way.tls is None:
        if _speaks_tls(way):
            return Refusal("url", f"{way.address} speaks TLS: begin it with https://")
        return None
    no_tls = Refusal("url", f"{way.address} speaks no TLS: begin it with http://")
    return _tls_refusal(way, no_tls)


def _tls_refusal(way: Way, no_tls: Refusal) -> Refusal | None:
    tls = way.tls or {}
    try:
        context = _context(tls)
        with (
            _connected(way) as plain,
            context.wrap_socket(plain, server_hostname=way.host) as secure,
        ):
            secure.settimeout(_ALERT_SECONDS)
            secure.recv(1)
    except ssl.SSLCertVerificationError as error:
        return _untrusted(way, tls, error)
    except TimeoutError:
        # Nothing to say until it is asked: the handshake was good.
        return None
    except ssl.SSLError as error:
        reason = error.reason or ""
        if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            return no_tls
        if "ALERT" in reason and "CERTIFICATE" in reason:
            return _unwanted(way, tls)
        return None
    except OSError:
        return None
    return None


def _untrusted(way: Way, tls: Mapping[str, str], error: ssl.SSLCertVerificationError) -> Refusal:
    """What is wrong with the server's certificate."""
    if error.verify_code == _EXPIRED:
        return Refusal(
            way.key,
            f"the certificate of {way.address}, or the CA that signed it, has expired:"
            " the server needs a new one (or this machine's clock is wrong)",
        )
    if error.verify_code == _NOT_YET_VALID:
        return Refusal(
            way.key,
            f"the certificate of {way.address} is not valid yet: is this machine's clock right?",
        )
    if error.verify_code in _OTHER_NAME:
        return Refusal(
            way.key,
            f"the certificate of {way.address} is for another name than {way.host}: connect"
            " by a name that stands in it",
        )
    trusted = tls.get("ssl.ca.location")
    by = f"the CA in {trusted}" if trusted else "a CA that this machine trusts"
    return Refusal(
        "ssl.ca.location",
        f"the certificate of {way.address} is not signed by {by}: name the file with the"
        " certificate of its CA",
    )


def _unwanted(way: Way, tls: Mapping[str, str]) -> Refusal:
    """Why the server may reject the client's certificate."""
    file = tls.get("ssl.certificate.location")
    if file is None:
        return Refusal(
            "ssl.certificate.location",
            f"{way.address} wants a certificate of its clients: name the files of"
            " certificate and key (ssl.key.location), or take the port of another listener",
        )
    expired = _expired(Path(file))
    if expired is not None:
        return Refusal(
            "ssl.certificate.location",
            f"the certificate in {file} expired on {expired:%Y-%m-%d}: have it renewed",
        )
    return Refusal(
        "ssl.certificate.location",
        f"{way.address} does not trust the certificate in {file}: have it signed by an"
        " CA that the server trusts",
    )


def _expired(file: Path) -> datetime | None:
    for certificate in x509.load_pem_x509_certificates(file.read_bytes()):
        end = certificate.not_valid_after_utc
        if end < datetime.now(UTC):
            return end
    return None


def _context(tls: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.get("ssl.ca.location"))
    if tls.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if certificate := tls.get("ssl.certificate.location"):
        context.load_cert_chain(
            certificate, tls.get("ssl.key.location"), tls.get("ssl.key.password")
        )
    return context


def _connected(way: Way) -> socket.socket:
    return socket.create_connection((way.host, way.port), _SECONDS)


def _speaks_tls(way: Way) -> bool:
    """Whether a TLS handshake succeeds, whoever answers it."""
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    try:
        with (
            _connected(way) as plain,
            anybody.wrap_socket(plain, server_hostname=way.host) as secure,
        ):
            return secure.version() is not None
    except OSError:
        return False


def _answers_in_plain_text(way: Way) -> bool:
    """Whether a Kafka broker answers a question without TLS."""
    try:
        with _connected(way) as plain:
            return _asked(plain, _API_VERSIONS, b"")
    except OSError:
        return False


def _hangs_up(way: Way) -> bool:
    """Whether a broker that answers ApiVersions closes the connection on a request for topics.

    It does where a client must authenticate first.
    """
    try:
        with _connected(way) as plain:
            if way.tls is None:
                return _greeted_and_left(plain)
            context = _context(way.tls)
            with context.wrap_socket(plain, server_hostname=way.host) as secure:
                return _greeted_and_left(secure)
    except OSError:
        return False


def _greeted_and_left(channel: socket.socket) -> bool:
    if not _asked(channel, _API_VERSIONS, b""):
        return False
    try:
        # Of no topic at all.
        return not _asked(channel, _METADATA, struct.pack(">i", 0), version=1)
    except TimeoutError:
        return False
    except OSError:
        return True


def _asked(channel: socket.socket, api: int, body: bytes, version: int = 0) -> bool:
    """Ask one question in Kafka's protocol; whether the answer is one to it."""
    number = 7231
    header = struct.pack(">hhih", api, version, number, -1)
    channel.settimeout(_SECONDS)
    channel.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    answer = b""
    while len(answer) < 8:
        more = channel.recv(8 - len(answer))
        if not more:
            return False
        answer += more
    return bool(struct.unpack(">ii", answer)[1] == number)
