"""A secure sandbox: who its users are, and the files that hold their secrets.

A sandbox is secure or not for as long as its data live: its folder ``security`` says so,
made by `sandbox up --secure` before anything else and removed by `sandbox reset`.
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
"""Makes topics and schemas; the broker's own name too. May do everything."""
PRODUCER = "producer"
"""Sends to the streams' topics, and nothing else."""
INGEST = "ingest"
"""Reads the streams' topics, and nothing else: the user of `spark-ingest`."""
PUBLISHER = "publisher"
"""Writes what exposures publish, and their schemas: the user of `spark-ingest publish`."""
USERS = (ADMIN, PRODUCER, INGEST, PUBLISHER)
CONTROLLER = "controller"
"""Who the broker is to its controller; no other listener knows this user."""


def make_secure(home: Home) -> None:
    """Make the authority, the certificates and the passwords, unless they are there.

    Raises:
        ConfigurationError: The sandbox has data that were made without them.
    """
    if home.secure:
        return
    for service in ("kafka", "registry"):
        if (home.services / service / "data").exists():
            raise ConfigurationError(
                f"the sandbox in {home.path} has data of a {service} without security, and"
                " stays so: `sandbox reset --yes` removes them, or choose another SANDBOX_HOME"
            )
    # In one step: half of it would count as all.
    new = home.security.with_name("security.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700, parents=True)
    authority = Authority.made("Millrace sandbox")
    _write(new / "ca.key", authority.signed.key)
    _write(new / "ca.pem", authority.signed.certificate)
    server = authority.server("sandbox", "127.0.0.1", "localhost")
    _write_signed(new, "server", server)
    # The broker wants both in one file.
    _write(new / "server.keystore", server.key + server.certificate)
    for user in USERS:
        _write_signed(new, user, authority.client(user))
    for user in (*USERS, CONTROLLER):
        _write(new / f"{user}.password", secrets.token_urlsafe(24).encode())
    new.rename(home.security)


def authority_of(home: Home) -> Authority:
    """The sandbox's own authority, to sign more."""
    folder = home.security
    return Authority(Signed((folder / "ca.key").read_bytes(), (folder / "ca.pem").read_bytes()))


def password(home: Home, user: str) -> str:
    """A user's password at the broker, and at the registry."""
    return (home.security / f"{user}.password").read_text()


def kafka_properties(home: Home, user: str) -> dict[str, str]:
    """How a client of the sandbox's broker connects, as librdkafka writes it.

    ``user`` has no meaning where the sandbox is not secure.
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
    """How a client of the sandbox's registry connects, as confluent-kafka writes it."""
    found = {"url": home.registry_url}
    if home.secure:
        found |= {
            "basic.auth.user.info": f"{user}:{password(home, user)}",
            "ssl.ca.location": str(home.security / "ca.pem"),
        }
    return found


def trust(home: Home) -> ssl.SSLContext | None:
    """What a TLS client of the sandbox's servers trusts; None where they speak no TLS."""
    if not home.secure:
        return None
    return ssl.create_default_context(cafile=str(home.security / "ca.pem"))


def write_secret(file: Path, text: str) -> None:
    """Write a file that only its owner may read, whatever the umask."""
    _write(file, text.encode())


def _write_signed(folder: Path, name: str, signed: Signed) -> None:
    _write(folder / f"{name}.key", signed.key)
    _write(folder / f"{name}.pem", signed.certificate)


def _write(file: Path, content: bytes) -> None:
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_bytes(content)
