"""Converts the connection properties of a profile for each Kafka client.

A profile has Kafka's properties by the names of librdkafka, which reads certificates from files.
Spark's Java client gets them as JAAS and PEM text, so that executors need no files.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from spark_ingest.errors import ConfigurationError

_TLS = ("SSL", "SASL_SSL")
_SASL = ("SASL_PLAINTEXT", "SASL_SSL")
_PROTOCOLS = ("PLAINTEXT", *_TLS, "SASL_PLAINTEXT")
_LOGIN = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f"{_LOGIN}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_LOGIN}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_LOGIN}.scram.ScramLoginModule",
}
_OAUTH = "OAUTHBEARER"
_MSK = "AWS_MSK_IAM"
_MECHANISMS = (*_MODULES, _OAUTH, _MSK)
_OAUTH_KEYS = (
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
)
_NEEDED_BY = {
    **dict.fromkeys(_MODULES, ("sasl.username", "sasl.password")),
    _OAUTH: _OAUTH_KEYS,
    _MSK: ("aws.region",),
}
_SASL_KEYS = {
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    *_OAUTH_KEYS,
    "sasl.oauthbearer.scope",
    "aws.region",
    "aws.role.arn",
}
_TLS_KEYS = {
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
}
# Properties with the same name in both clients.
_COMMON = {
    "bootstrap.servers",
    "client.id",
    "client.rack",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
}
_KNOWN = _COMMON | _SASL_KEYS | _TLS_KEYS
_INSTEAD = {
    "sasl.jaas.config": "sasl.username and sasl.password",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.truststore.": "ssl.ca.location, a file of PEM",
    "ssl.keystore.": "ssl.certificate.location and ssl.key.location, files of PEM",
}


def check(properties: Mapping[str, str], where: str) -> None:
    """Refuse invalid or ineffective properties.

    ``properties`` have their variables replaced; ``where`` is the section, for messages.

    Raises:
        ConfigurationError: A key is unknown, missing or without effect, or a file cannot be
            read; the message never has a value that could be secret.
    """
    for key in properties:
        _check_known(key, where)
    if "bootstrap.servers" not in properties:
        raise ConfigurationError(f"{where} has no bootstrap.servers")
    protocol = properties.get("security.protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        raise ConfigurationError(
            f"{where}.security.protocol is {protocol!r}: one of {', '.join(_PROTOCOLS)}"
        )
    for keys, protocols in ((_SASL_KEYS, _SASL), (_TLS_KEYS, _TLS)):
        idle = sorted(keys & set(properties))
        if idle and protocol not in protocols:
            raise ConfigurationError(
                f"{where}.{idle[0]} has no effect with security.protocol {protocol}: set "
                f"security.protocol to {' or '.join(protocols)}, or remove {idle[0]}"
            )
    if protocol in _SASL:
        _check_login(properties, where, protocol)
    if protocol in _TLS:
        check_tls(properties, where)
    for name, value in properties.items():
        if name != "ssl.key.password" and any(ord(letter) < ord(" ") for letter in value):
            raise ConfigurationError(
                f"{where}.{name} contains a line break or another control character: a secret "
                "must be a single line"
            )


def check_tls(properties: Mapping[str, str], where: str) -> None:
    """Refuse certificates and keys that cannot be read or do not match.

    Raises:
        ConfigurationError: The message has the key and the file.
    """
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm not in ("https", "none"):
        raise ConfigurationError(
            f"{where}.ssl.endpoint.identification.algorithm is {algorithm!r}: https, the "
            "default, checks the server's name; none does not"
        )
    if ca := properties.get("ssl.ca.location"):
        _certificates(ca, f"{where}.ssl.ca.location")
    certificate = properties.get("ssl.certificate.location")
    key = properties.get("ssl.key.location")
    if (certificate is None) != (key is None):
        present, absent = ("certificate", "key") if key is None else ("key", "certificate")
        raise ConfigurationError(
            f"{where}.ssl.{present}.location requires ssl.{absent}.location as well"
        )
    if certificate is not None and key is not None:
        own = _certificates(certificate, f"{where}.ssl.certificate.location")[0]
        private = _private_key(key, properties.get("ssl.key.password"), f"{where}.ssl.key.location")
        if private.public_key() != own.public_key():
            raise ConfigurationError(
                f"{where}.ssl.key.location is not the key of ssl.certificate.location"
            )


def librdkafka(properties: Mapping[str, str]) -> dict[str, Any]:
    """The properties for clients of confluent-kafka, without error and log callbacks."""
    made: dict[str, Any] = {
        key: value for key, value in properties.items() if not key.startswith("aws.")
    }
    mechanism = properties.get("sasl.mechanism")
    if mechanism == _OAUTH:
        made["sasl.oauthbearer.method"] = "oidc"
        if ca := properties.get("ssl.ca.location"):
            made["https.ca.location"] = ca
    elif mechanism == _MSK:
        made["sasl.mechanism"] = _OAUTH
        made["oauth_cb"] = _msk_tokens(properties["aws.region"], properties.get("aws.role.arn"))
    return made


def java(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties for Kafka's Java client.

    Two of them are secret, ``sasl.jaas.config`` and ``ssl.keystore.key``: see
    ``session.hide_secrets``.
    """
    made = {key: value for key, value in properties.items() if key in _COMMON}
    mechanism = properties.get("sasl.mechanism")
    if mechanism is not None:
        made["sasl.mechanism"] = mechanism
        made |= _java_login(mechanism, properties)
    if ca := properties.get("ssl.ca.location"):
        made["ssl.truststore.type"] = "PEM"
        made["ssl.truststore.certificates"] = Path(ca).read_text()
    certificate = properties.get("ssl.certificate.location")
    key = properties.get("ssl.key.location")
    if certificate and key:
        private = _private_key(key, properties.get("ssl.key.password"), "kafka.ssl.key.location")
        made["ssl.keystore.type"] = "PEM"
        made["ssl.keystore.certificate.chain"] = Path(certificate).read_text()
        # The only key format that Java supports.
        made["ssl.keystore.key"] = private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        made["ssl.endpoint.identification.algorithm"] = ""
    return made


def _check_known(key: str, where: str) -> None:
    if key in _KNOWN:
        return
    for start, instead in _INSTEAD.items():
        if key.startswith(start):
            raise ConfigurationError(
                f"{where}.{key}: use {instead} instead, which both Kafka clients support"
            )
    near = difflib.get_close_matches(key, _KNOWN, 1)
    hint = f"; is it {near[0]}?" if near else ""
    raise ConfigurationError(
        f"{where}.{key} is not a property that spark-ingest supports{hint} "
        "(docs/ingest.md, Security, lists them)"
    )


def _check_login(properties: Mapping[str, str], where: str, protocol: str) -> None:
    mechanism = properties.get("sasl.mechanism")
    if mechanism not in _MECHANISMS:
        problem = "is missing" if mechanism is None else f"is {mechanism!r}"
        raise ConfigurationError(
            f"{where}.sasl.mechanism {problem}: one of {', '.join(_MECHANISMS)}"
        )
    for key in _NEEDED_BY[mechanism]:
        if key not in properties:
            raise ConfigurationError(
                f"{where}.{key} is missing: sasl.mechanism {mechanism} requires it"
            )
    if mechanism == _MSK and protocol != "SASL_SSL":
        raise ConfigurationError(
            f"{where}.security.protocol is {protocol}: {_MSK} requires SASL_SSL"
        )


def _java_login(mechanism: str, properties: Mapping[str, str]) -> dict[str, str]:
    if mechanism == _MSK:
        package, options = "software.amazon.msk.auth.iam", {}
        if role := properties.get("aws.role.arn"):
            options = {"awsRoleArn": role, "awsStsRegion": properties["aws.region"]}
        return {
            "sasl.jaas.config": _jaas(f"{package}.IAMLoginModule", options),
            "sasl.client.callback.handler.class": f"{package}.IAMClientCallbackHandler",
        }
    if mechanism == _OAUTH:
        url, name, secret = (properties[key] for key in _OAUTH_KEYS)
        options = {"clientId": name, "clientSecret": secret}
        if scope := properties.get("sasl.oauthbearer.scope"):
            options["scope"] = scope
        package = f"{_LOGIN}.oauthbearer"
        return {
            "sasl.jaas.config": _jaas(f"{package}.OAuthBearerLoginModule", options),
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.login.callback.handler.class": (f"{package}.OAuthBearerLoginCallbackHandler"),
        }
    options = {"username": properties["sasl.username"], "password": properties["sasl.password"]}
    return {"sasl.jaas.config": _jaas(_MODULES[mechanism], options)}


def _jaas(module: str, options: Mapping[str, str]) -> str:
    def quoted(text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    words = [module, "required", *(f"{name}={quoted(value)}" for name, value in options.items())]
    return f"{' '.join(words)};"


def _msk_tokens(region: str, role: str | None) -> Callable[[str], tuple[str, float]]:
    """A token callback of librdkafka that signs with this machine's AWS identity, or a role's."""
    try:
        signer = import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    except ImportError as error:
        raise ConfigurationError(
            f"kafka.sasl.mechanism {_MSK} requires aws-msk-iam-sasl-signer-python: "
            "pip install 'millrace[msk]'"
        ) from error

    # The signer gives STS no region, and boto does not read AWS_REGION.
    os.environ.setdefault("AWS_DEFAULT_REGION", region)

    def token(_: str) -> tuple[str, float]:
        signed, expires_ms = (
            signer.generate_auth_token_from_role_arn(region, role)
            if role
            else signer.generate_auth_token(region)
        )
        return signed, expires_ms / 1000

    return token


def _read(file: str, key: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{key}: cannot read {file} ({error.strerror})") from error


def _certificates(file: str, key: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(_read(file, key))
    except ValueError as error:
        raise ConfigurationError(f"{key}: {file} has no certificate in PEM format") from error


def _private_key(file: str, password: str | None, key: str) -> Any:
    content = _read(file, key)
    secret = password.encode() if password else None
    try:
        return serialization.load_pem_private_key(content, secret)
    # An encrypted key without a password, or a password for an unencrypted key.
    except TypeError as error:
        state = "is encrypted" if secret is None else "is not encrypted"
        fix = "set" if secret is None else "remove"
        raise ConfigurationError(f"{key}: {file} {state}: {fix} ssl.key.password") from error
    except ValueError as error:
        fix = "" if secret is None else ", or ssl.key.password is wrong"
        raise ConfigurationError(f"{key}: {file} has no private key in PEM format{fix}") from error
