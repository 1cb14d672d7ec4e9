"""Certificates of a secure sandbox: a certificate authority, and certificates signed by it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_YEARS = timedelta(days=3650)
# Valid from the past, so that clock changes do not invalidate a new certificate.
_SLACK = timedelta(days=1)


@dataclass(frozen=True)
class Signed:
    """A private key and its certificate.

    Attributes:
        key: PKCS#8 PEM, the format that Java, OpenSSL and librdkafka all support.
        certificate: PEM.
    """

    key: bytes
    certificate: bytes

    def __repr__(self) -> str:
        return "Signed(…)"


class Authority:
    """A certificate authority.

    ``signed`` is from :meth:`made`.
    """

    def __init__(self, signed: Signed) -> None:
        self.signed = signed
        key = serialization.load_pem_private_key(signed.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("an authority's key is of an elliptic curve")
        self._key = key
        self._certificate = x509.load_pem_x509_certificate(signed.certificate)

    @classmethod
    def made(cls, name: str) -> Authority:
        """A new authority with a self-signed certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _named(name)
        certificate = (
            _begun(subject, subject, key, _YEARS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(_pem(key, certificate))

    def server(self, name: str, *hosts: str, lifetime: timedelta = _YEARS) -> Signed:
        """A server certificate for these names or addresses.

        ``lifetime`` is from now on; if negative, the certificate has expired.
        """
        return self._leaf(name, ExtendedKeyUsageOID.SERVER_AUTH, hosts, lifetime)

    def client(self, name: str, lifetime: timedelta = _YEARS) -> Signed:
        """A client certificate."""
        return self._leaf(name, ExtendedKeyUsageOID.CLIENT_AUTH, (), lifetime)

    def _leaf(
        self, name: str, purpose: x509.ObjectIdentifier, hosts: tuple[str, ...], lifetime: timedelta
    ) -> Signed:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self._certificate.subject
        builder = (
            _begun(_named(name), issuer, key, lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return _pem(key, builder.sign(self._key, hashes.SHA256()))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    end = datetime.now(UTC) + lifetime
    begin = min(datetime.now(UTC), end) - _SLACK
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Signed:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Signed(private, certificate.public_bytes(serialization.Encoding.PEM))
