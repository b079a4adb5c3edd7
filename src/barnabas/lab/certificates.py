"""A certificate authority made on the spot, with one certificate for the brokers and one for the clients."""

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = datetime.timedelta(days=30)
CLOCK_SKEW = datetime.timedelta(minutes=5)
CLIENT_NAME = "barnabas"


@dataclass(frozen=True)
class Certificates:
    """Paths of PEM files; `server` holds the brokers' key and certificate, as Kafka wants them in one file."""

    ca: Path
    server: Path
    client: Path
    client_key: Path


@dataclass(frozen=True)
class _Pair:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def make_certificates(directory: Path, names: Iterable[str], valid: datetime.timedelta = VALID) -> Certificates:
    """Makes all files in the directory; the brokers' certificate is good for each name or IP address.

    `valid`: how long it is good from now on; below zero it has expired.
    """
    directory.mkdir(exist_ok=True)
    ca = _authority()
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in dict.fromkeys(names)])
    server = _issued(ca, "broker", ExtendedKeyUsageOID.SERVER_AUTH, alternatives, valid)
    client = _issued(ca, CLIENT_NAME, ExtendedKeyUsageOID.CLIENT_AUTH, None)
    files = Certificates(
        directory / "ca.pem", directory / "server.pem", directory / "client.pem", directory / "client.key"
    )
    write_private(files.ca, ca.certificate_pem())
    write_private(files.server, server.key_pem() + server.certificate_pem() + ca.certificate_pem())
    write_private(files.client, client.certificate_pem())
    write_private(files.client_key, client.key_pem())
    return files


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that only its owner can read, and could never read otherwise."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _authority() -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject("barnabas lab authority")
    certificate = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _Pair(key, certificate)


def _issued(
    ca: _Pair,
    name: str,
    usage: x509.ObjectIdentifier,
    alternatives: x509.SubjectAlternativeName | None,
    valid: datetime.timedelta = VALID,
) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_subject(name), ca.certificate.subject, key, valid)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    )
    if alternatives:
        builder = builder.add_extension(alternatives, critical=False)
    return _Pair(key, builder.sign(ca.key, hashes.SHA256()))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid: datetime.timedelta = VALID
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    until = now + valid
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, until) - CLOCK_SKEW)
        .not_valid_after(until)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
