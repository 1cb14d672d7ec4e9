"""Diagnosis of rejected connections, by another handshake.

Client libraries do not distinguish a wrong CA, an expired certificate and a wrong name, and
report plain text on a TLS port as a lost connection. So after a failed connection the handshake
is repeated here, to find the cause.
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
# A server rejects a client certificate right after the handshake.
_ALERT_SECONDS = 0.5
_API_VERSIONS = 18
_METADATA = 3
_EXPIRED = 10
_NOT_YET_VALID = 9
_OTHER_NAME = (62, 64)


@dataclass(frozen=True)
class Refusal:
    """The cause of a rejected connection.

    Attributes:
        key: The property to change, in its section of the profile.
        text: The problem and the fix, without secrets.
    """

    key: str
    text: str


@dataclass(frozen=True)
class Endpoint:
    """The address of a server, and the client's security settings.

    Attributes:
        host: Its name or address.
        tls: Certificates by the names of Kafka properties; None for plain text.
        key: The property with the address.
        login: Whether the client uses SASL.
    """

    host: str
    port: int
    tls: Mapping[str, str] | None
    key: str
    login: bool = False

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def kafka_refusal(endpoint: Endpoint) -> Refusal | None:
    """Why a broker rejects this client; None if that is unknown, or the broker is down."""
    if endpoint.tls is None:
        if _speaks_tls(endpoint):
            wanted = "SASL_SSL" if endpoint.login else "SASL_SSL or SSL"
            return Refusal(
                "security.protocol",
                f"{endpoint.address} requires TLS, but the client uses plain text: set it to"
                f" {wanted} (the sandbox: `--target secure`)",
            )
    else:
        plain = "SASL_PLAINTEXT" if endpoint.login else "PLAINTEXT"
        no_tls = Refusal(
            "security.protocol",
            f"{endpoint.address} does not use TLS: set it to {plain}, or use the port of its TLS"
            " listener",
        )
        refusal = _tls_refusal(endpoint, no_tls)
        if refusal is not None:
            return refusal
        # A broker closes the connection after an invalid handshake.
        if _answers_in_plain_text(endpoint):
            return no_tls
    # Twice: a broker that is shutting down closes connections as well.
    if not endpoint.login and all(_hangs_up(endpoint) for _ in range(2)):
        protocol = "SASL_PLAINTEXT" if endpoint.tls is None else "SASL_SSL"
        return Refusal(
            "security.protocol",
            f"{endpoint.address} requires authentication: set it to {protocol}, with"
            " sasl.mechanism, sasl.username and sasl.password",
        )
    return None


def web_refusal(endpoint: Endpoint) -> Refusal | None:
    """Why a web server rejects this client; None if that is unknown, or it is down."""
    if endpoint.tls is None:
        if _speaks_tls(endpoint):
            return Refusal("url", f"{endpoint.address} requires TLS: use https://")
        return None
    no_tls = Refusal("url", f"{endpoint.address} does not use TLS: use http://")
    return _tls_refusal(endpoint, no_tls)


def _tls_refusal(endpoint: Endpoint, no_tls: Refusal) -> Refusal | None:
    tls = endpoint.tls or {}
    try:
        context = _context(tls)
        with (
            _connected(endpoint) as plain,
            context.wrap_socket(plain, server_hostname=endpoint.host) as secure,
        ):
            secure.settimeout(_ALERT_SECONDS)
            secure.recv(1)
    except ssl.SSLCertVerificationError as error:
        return _untrusted(endpoint, tls, error)
    except TimeoutError:
        # The handshake succeeded: the server waits for a request.
        return None
    except ssl.SSLError as error:
        reason = error.reason or ""
        if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            return no_tls
        if "ALERT" in reason and "CERTIFICATE" in reason:
            return _unwanted(endpoint, tls)
        return None
    except OSError:
        return None
    return None


def _untrusted(
    endpoint: Endpoint, tls: Mapping[str, str], error: ssl.SSLCertVerificationError
) -> Refusal:
    """Why the server's certificate was rejected."""
    if error.verify_code == _EXPIRED:
        return Refusal(
            endpoint.key,
            f"the certificate of {endpoint.address}, or the CA that signed it, has expired:"
            " the server needs a new one (or this machine's clock is wrong)",
        )
    if error.verify_code == _NOT_YET_VALID:
        return Refusal(
            endpoint.key,
            f"the certificate of {endpoint.address} is not valid yet: check this machine's clock",
        )
    if error.verify_code in _OTHER_NAME:
        return Refusal(
            endpoint.key,
            f"the certificate of {endpoint.address} is for another name than {endpoint.host}: use"
            " a name in the certificate",
        )
    trusted = tls.get("ssl.ca.location")
    by = f"the CA in {trusted}" if trusted else "a CA that this machine trusts"
    return Refusal(
        "ssl.ca.location",
        f"the certificate of {endpoint.address} is not signed by {by}: set it to the file with the"
        " certificate of its CA",
    )


def _unwanted(endpoint: Endpoint, tls: Mapping[str, str]) -> Refusal:
    """Why the server may reject the client's certificate."""
    file = tls.get("ssl.certificate.location")
    if file is None:
        return Refusal(
            "ssl.certificate.location",
            f"{endpoint.address} requires a client certificate: set the files of"
            " certificate and key (ssl.key.location), or use the port of another listener",
        )
    expired = _expired(Path(file))
    if expired is not None:
        return Refusal(
            "ssl.certificate.location",
            f"the certificate in {file} expired on {expired:%Y-%m-%d}: renew it",
        )
    return Refusal(
        "ssl.certificate.location",
        f"{endpoint.address} does not trust the certificate in {file}: use one from a CA that"
        " the server trusts",
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


def _connected(endpoint: Endpoint) -> socket.socket:
    return socket.create_connection((endpoint.host, endpoint.port), _SECONDS)


def _speaks_tls(endpoint: Endpoint) -> bool:
    """Whether a TLS handshake succeeds, without verification of the certificate."""
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    try:
        with (
            _connected(endpoint) as plain,
            anybody.wrap_socket(plain, server_hostname=endpoint.host) as secure,
        ):
            return secure.version() is not None
    except OSError:
        return False


def _answers_in_plain_text(endpoint: Endpoint) -> bool:
    """Whether a Kafka broker responds to a request without TLS."""
    try:
        with _connected(endpoint) as plain:
            return _asked(plain, _API_VERSIONS, b"")
    except OSError:
        return False


def _hangs_up(endpoint: Endpoint) -> bool:
    """Whether a broker responds to ApiVersions but closes the connection after Metadata.

    It does if a client must authenticate first.
    """
    try:
        with _connected(endpoint) as plain:
            if endpoint.tls is None:
                return _greeted_and_left(plain)
            context = _context(endpoint.tls)
            with context.wrap_socket(plain, server_hostname=endpoint.host) as secure:
                return _greeted_and_left(secure)
    except OSError:
        return False


def _greeted_and_left(channel: socket.socket) -> bool:
    if not _asked(channel, _API_VERSIONS, b""):
        return False
    try:
        # With an empty list of topics.
        return not _asked(channel, _METADATA, struct.pack(">i", 0), version=1)
    except TimeoutError:
        return False
    except OSError:
        return True


def _asked(channel: socket.socket, api: int, body: bytes, version: int = 0) -> bool:
    """Send one request of Kafka's protocol; whether the response has its correlation id."""
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
