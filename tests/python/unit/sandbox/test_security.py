"""A sandbox is secure or not from its first data on."""

from __future__ import annotations

import secrets
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from sandbox.services.certificates import Authority
from sandbox.services.kafka_listeners import listeners
from sandbox.services.security import USERS, kafka_properties, make_secure, registry_properties
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError


def test_its_secrets_are_made_once_and_are_its_owners(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")

    make_secure(home)
    first = {file.name: file.read_bytes() for file in home.security.iterdir()}
    make_secure(home)

    assert home.secure
    assert {file.name: file.read_bytes() for file in home.security.iterdir()} == first
    for path in (home.security, *home.security.iterdir()):
        assert path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) == 0, path
    assert home.registry_url.startswith("https://")
    assert home.environment()["SPARK_INGEST_TARGET"] == "secure"


@pytest.mark.parametrize("service", ["kafka", "registry"])
def test_what_has_data_stays_as_it_is(tmp_path: Path, service: str) -> None:
    home = Home(tmp_path)
    (home.services / service / "data").mkdir(parents=True)

    with pytest.raises(ConfigurationError, match="sandbox reset --yes"):
        make_secure(home)

    assert not home.secure


def test_a_half_made_one_is_recreated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)

    def interrupted(_: int) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(secrets, "token_urlsafe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_secure(home)
    assert not home.security.exists()

    make_secure(home)
    assert home.secure


def test_no_user_is_named_where_it_is_open(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert kafka_properties(home, "admin") == {"bootstrap.servers": home.bootstrap_servers}
    assert registry_properties(home, "admin") == {"url": home.registry_url}
    assert "PLAINTEXT://" in listeners(home)["listeners"]


def test_no_listener_of_a_secure_one_is_open(tmp_path: Path) -> None:
    home = Home(tmp_path)
    make_secure(home)

    settings = listeners(home)

    assert "PLAINTEXT" not in settings["listeners"]
    protocols = dict(
        pair.split(":") for pair in settings["listener.security.protocol.map"].split(",")
    )
    assert protocols == {"USERS": "SASL_SSL", "CERTIFICATES": "SSL", "CONTROLLER": "SASL_SSL"}
    assert settings["allow.everyone.if.no.acl.found"] == "false"
    # The controller's user is nobody's user, and no user is the controller's.
    controller = settings["listener.name.controller.plain.sasl.jaas.config"]
    assert not any(f"user_{user}=" in controller for user in USERS)


def test_an_authority_signs_what_trusts_it_alone(tmp_path: Path) -> None:
    authority = Authority.made("ours")
    server = authority.server("s", "127.0.0.1", "kafka.example")
    (tmp_path / "ca.pem").write_bytes(authority.signed.certificate)
    (tmp_path / "s.pem").write_bytes(server.key + server.certificate)

    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "s.pem")
    ssl.create_default_context(cafile=tmp_path / "ca.pem")

    certificate = x509.load_pem_x509_certificate(server.certificate)
    certificate.verify_directly_issued_by(
        x509.load_pem_x509_certificate(authority.signed.certificate)
    )
    assert "PRIVATE" not in repr(server)
    gone = authority.client("c", timedelta(days=-1))
    assert x509.load_pem_x509_certificate(gone.certificate).not_valid_after_utc < datetime.now(UTC)
