"""The tunnel's shared secret: one file with everything both ends need for mutual TLS 1.3.

`create` makes a CA for this tunnel alone, signs one certificate per end and throws the CA's private key away: nobody,
not even the owner of the file, can make a third certificate. A certificate is good for one end only (extended key usage
and name), so the key of `connect` cannot pose as `serve`. A tunnel gets a new identity by a new file at both ends.
"""

import os
import ssl
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from barnabas.errors import ConfigError

DEFAULT_YEARS = 5.0
CLOCK_SKEW = timedelta(hours=1)
CERTIFICATE = "CERTIFICATE"
PRIVATE_KEY = "PRIVATE KEY"


class Role(StrEnum):
    """An end of the tunnel."""

    SERVE = "serve"
    CONNECT = "connect"

    @property
    def name_in_certificate(self) -> str:
        """The DNS name that the certificate of this end carries."""
        return f"{self.value}.tunnel.barnabas"


PURPOSE = {Role.SERVE: ExtendedKeyUsageOID.SERVER_AUTH, Role.CONNECT: ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True)
class Identity:
    """What one end of the tunnel shows and trusts; never printed."""

    role: Role
    authority: str = field(repr=False)
    certificate: str = field(repr=False)
    private_key: str = field(repr=False)
    expires: datetime


def create(path: Path, *, years: float = DEFAULT_YEARS, split: bool = False) -> list[Path]:
    """Write a new key file, mode 0600, and never over an old one; returns the files written.

    With `split` there are two files, `<path>.serve` and `<path>.connect`, each without the other end's private key.
    """
    if not 0 < years <= 100:
        raise ConfigError(f"tunnel keygen: {years:g} years is not a validity; give a number above 0 and up to 100")
    now = datetime.now(UTC)
    expires = now + timedelta(days=365.25 * years)
    signer, authority = _authority(now - CLOCK_SKEW, expires)
    parts = {role: _signed(role, signer, authority, now - CLOCK_SKEW, expires) for role in Role}
    head = f"# barnabas tunnel key, expires {expires:%Y-%m-%d}; whoever has this file can use the tunnel\n"
    top = head + authority.public_bytes(serialization.Encoding.PEM).decode()
    if not split:
        _write_new(path, top + "".join(f"# {role}\n{text}" for role, text in parts.items()))
        return [path]
    written = []
    for role, text in parts.items():
        _write_new(path.with_name(f"{path.name}.{role}"), f"{top}# {role}\n{text}")
        written.append(path.with_name(f"{path.name}.{role}"))
    return written


def load(path: Path, role: Role) -> Identity:
    """Read the identity of one end; a file that others may read is refused."""
    text = _private_text(path)
    try:
        return _found(path, text, role)
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.ExtensionNotFound):
        raise ConfigError(
            f'tunnel key "{path}": what is in it cannot be read as keys and certificates; make it anew: {_REMEDY}'
        ) from None


def tls_context(identity: Identity) -> ssl.SSLContext:
    """TLS 1.3 and nothing older, this end's certificate, and a peer signed by this tunnel's own CA only."""
    serving = identity.role is Role.SERVE
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serving else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cadata=identity.authority)
    with _as_file(identity.certificate + identity.private_key) as path:
        context.load_cert_chain(path)
    if serving:
        context.num_tickets = 0
    return context


def peer_name(peer: Mapping[str, Any] | None) -> str:
    """The name in a verified peer's certificate, as `ssl` hands it out; empty where there is none."""
    names = (peer or {}).get("subjectAltName", ())
    return next((value for kind, value in names if kind == "DNS"), "")


_REMEDY = "barnabas tunnel keygen --output FILE, then copy it to both sides"


def _found(path: Path, text: str, role: Role) -> Identity:
    certificates = [x509.load_pem_x509_certificate(block.encode()) for block in _blocks(path, text, CERTIFICATE)]
    authority = next((found for found in certificates if _is_authority(found)), None)
    certificate = next((found for found in certificates if _role_of(found) is role), None)
    if authority is None or certificate is None:
        raise ConfigError(f'tunnel key "{path}": no certificate for {role} in it; make the file anew: {_REMEDY}')
    public = certificate.public_key()
    for block in _blocks(path, text, PRIVATE_KEY):
        if serialization.load_pem_private_key(block.encode(), None).public_key() == public:
            return Identity(role, _pem(authority), _pem(certificate), block, certificate.not_valid_after_utc)
    raise ConfigError(f'tunnel key "{path}": it has no private key for {role}; make the file anew: {_REMEDY}')


def _authority(start: datetime, end: datetime) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "barnabas tunnel CA")])
    public = key.public_key()
    builder = (
        _builder(name, name, public, start, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )
    return key, builder.sign(key, hashes.SHA256())


def _signed(
    role: Role, signer: ec.EllipticCurvePrivateKey, authority: x509.Certificate, start: datetime, end: datetime
) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, role.name_in_certificate)])
    builder = (
        _builder(name, authority.subject, key.public_key(), start, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([PURPOSE[role]]), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(role.name_in_certificate)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return _pem(builder.sign(signer, hashes.SHA256())) + private.decode()


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    return builder.serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _write_new(path: Path, text: str) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigError(f'tunnel key "{path}": the file exists; move it away or give another --output') from None
    except OSError as error:
        raise ConfigError(f'tunnel key "{path}": it cannot be written: {error.strerror}') from None
    with os.fdopen(handle, "w") as file:
        file.write(text)


def _private_text(path: Path) -> str:
    try:
        with path.open() as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise ConfigError(
                    f'tunnel key "{path}": its mode is {mode:04o}, so others on this machine may read it; '
                    f"make a new key if they could have, then: chmod 600 {path}"
                )
            return file.read()
    except FileNotFoundError:
        raise ConfigError(f'tunnel key "{path}": there is no such file; make it: {_REMEDY}') from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f'tunnel key "{path}": it cannot be read: {error}') from None


def _blocks(path: Path, text: str, label: str) -> list[str]:
    begin, end = f"-----BEGIN {label}-----", f"-----END {label}-----"
    found = [begin + part.partition(end)[0] + end + "\n" for part in text.split(begin)[1:]]
    if not found:
        raise ConfigError(
            f'tunnel key "{path}": no {label.lower()} in it: is this the file of keygen? If not: {_REMEDY}'
        )
    return found


def _is_authority(certificate: x509.Certificate) -> bool:
    return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def _role_of(certificate: x509.Certificate) -> Role | None:
    if _is_authority(certificate):
        return None
    purposes = list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    return next((role for role, purpose in PURPOSE.items() if purpose in purposes), None)


@contextmanager
def _as_file(secret: str) -> Iterator[Path]:
    """`ssl` reads private keys from files only: a file of our own in a directory of our own (0700), gone at once."""
    with tempfile.TemporaryDirectory(prefix="barnabas-") as folder:
        path = Path(folder, "identity")
        _write_new(path, secret)
        yield path
