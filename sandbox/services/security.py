"""A secure sandbox: its users, and the files with their secrets.

A sandbox with data cannot change between secure and not secure: it is secure if the folder
``security`` exists, which `sandbox up --secure` creates first and `sandbox reset` removes.
"""

from __future__ import annotations

import secrets
import shutil
import ssl
from pathlib import Path

from sandbox.services.certificates import Authority, Signed
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError

ADMIN = "admin"
"""Super user: creates topics and schemas; also the broker's own user."""
PRODUCER = "producer"
"""May only write to the streams' topics."""
INGEST = "ingest"
"""May only read the streams' topics: the user of `spark-ingest`."""
PUBLISHER = "publisher"
"""Writes what exposures publish, and their schemas: the user of `spark-ingest publish`."""
USERS = (ADMIN, PRODUCER, INGEST, PUBLISHER)
CONTROLLER = "controller"
"""The broker's user for its controller; unknown to the other listeners."""


def make_secure(home: Home) -> None:
    """Create the certificate authority, certificates and passwords if they do not exist.

    Raises:
        ConfigurationError: The sandbox has data from before it was secure.
    """
    if home.secure:
        return
    for service in ("kafka", "registry"):
        if (home.services / service / "data").exists():
            raise ConfigurationError(
                f"the sandbox in {home.path} has data of a {service} without security, and"
                " stays so: `sandbox reset --yes` removes them, or choose another SANDBOX_HOME"
            )
    # Atomically: a partial folder would count as complete.
    new = home.security.with_name("security.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700, parents=True)
    authority = Authority.made("Millrace sandbox")
    _write(new / "ca.key", authority.signed.key)
    _write(new / "ca.pem", authority.signed.certificate)
    server = authority.server("sandbox", "127.0.0.1", "localhost")
    _write_signed(new, "server", server)
    # The broker needs both in one file.
    _write(new / "server.keystore", server.key + server.certificate)
    for user in USERS:
        _write_signed(new, user, authority.client(user))
    for user in (*USERS, CONTROLLER):
        _write(new / f"{user}.password", secrets.token_urlsafe(24).encode())
    new.rename(home.security)


def authority_of(home: Home) -> Authority:
    """The sandbox's certificate authority, to sign more certificates."""
    folder = home.security
    return Authority(Signed((folder / "ca.key").read_bytes(), (folder / "ca.pem").read_bytes()))


def password(home: Home, user: str) -> str:
    """A user's password for the broker and the registry."""
    return (home.security / f"{user}.password").read_text()


def kafka_properties(home: Home, user: str) -> dict[str, str]:
    """Client settings for the sandbox's broker, for librdkafka.

    ``user`` is ignored if the sandbox is not secure.
    """
    found = {"bootstrap.servers": home.bootstrap_servers}
    if home.secure:
        found |= {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password(home, user),
            "ssl.ca.location": str(home.security / "ca.pem"),
        }
    return found


def registry_properties(home: Home, user: str) -> dict[str, str]:
    """Client settings for the sandbox's registry, for confluent-kafka."""
    found = {"url": home.registry_url}
    if home.secure:
        found |= {
            "basic.auth.user.info": f"{user}:{password(home, user)}",
            "ssl.ca.location": str(home.security / "ca.pem"),
        }
    return found


def trust(home: Home) -> ssl.SSLContext | None:
    """The TLS trust settings for the sandbox's servers; None without TLS."""
    if not home.secure:
        return None
    return ssl.create_default_context(cafile=str(home.security / "ca.pem"))


def write_secret(file: Path, text: str) -> None:
    """Write a file that only its owner can read, regardless of the umask."""
    _write(file, text.encode())


def _write_signed(folder: Path, name: str, signed: Signed) -> None:
    _write(folder / f"{name}.key", signed.key)
    _write(folder / f"{name}.pem", signed.certificate)


def _write(file: Path, content: bytes) -> None:
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_bytes(content)
