"""The key file: private, whole, and good for one end each."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas.tunnel.keys import Role, create, load, tls_context


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "serve.tunnel.barnabas") -> str | None:
    """A handshake in memory; the TLS version, or the error raised by whoever refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = server.wrap_bio(to_server, to_client, server_side=True)
    two = client.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(4):
        for side in (two, one):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return one.version()


def test_the_two_ends_of_one_file_accept_each_other_by_tls_1_3(tmp_path: Path) -> None:
    create(tmp_path / "key")
    contexts = {role: tls_context(load(tmp_path / "key", role)) for role in Role}
    assert shake_hands(contexts[Role.SERVE], contexts[Role.CONNECT]) == "TLSv1.3"


def test_the_ends_of_two_files_refuse_each_other(tmp_path: Path) -> None:
    create(tmp_path / "one")
    create(tmp_path / "two")
    server, client = load(tmp_path / "one", Role.SERVE), load(tmp_path / "two", Role.CONNECT)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tls_context(server), tls_context(client))


def test_the_certificate_of_connect_cannot_serve(tmp_path: Path) -> None:
    create(tmp_path / "key")
    posing = load(tmp_path / "key", Role.CONNECT)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "posing").write_text(posing.certificate + posing.private_key)
    server.load_cert_chain(tmp_path / "posing")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"purpose|[Hh]ostname"):
        shake_hands(server, tls_context(posing))
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        shake_hands(server, tls_context(posing), "connect.tunnel.barnabas")


def test_tls_1_2_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "key")
    old = tls_context(load(tmp_path / "key", Role.CONNECT))
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"):
        shake_hands(tls_context(load(tmp_path / "key", Role.SERVE)), old)


def test_the_file_is_for_its_owner_only_and_holds_no_key_of_the_authority(tmp_path: Path) -> None:
    create(tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    text = (tmp_path / "key").read_text()
    assert text.count("BEGIN CERTIFICATE") == 3
    assert text.count("BEGIN PRIVATE KEY") == 2


def test_the_years_are_settable(tmp_path: Path) -> None:
    create(tmp_path / "key", years=2)
    expires = load(tmp_path / "key", Role.SERVE).expires
    assert abs(expires - datetime.now(UTC) - timedelta(days=730.5)) < timedelta(minutes=1)
    with pytest.raises(ConfigError, match="0 years is not a validity"):
        create(tmp_path / "never", years=0)


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    create(tmp_path / "key")
    before = (tmp_path / "key").read_bytes()
    with pytest.raises(ConfigError, match="the file exists"):
        create(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    create(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(ConfigError, match=f"its mode is {mode:04o}.*chmod 600"):
        load(tmp_path / "key", Role.SERVE)


def test_split_files_serve_one_end_each(tmp_path: Path) -> None:
    serve, connect = create(tmp_path / "key", split=True)
    contexts = tls_context(load(serve, Role.SERVE)), tls_context(load(connect, Role.CONNECT))
    assert shake_hands(*contexts) == "TLSv1.3"
    with pytest.raises(ConfigError, match="no certificate for connect"):
        load(serve, Role.CONNECT)
    assert serve.read_text().count("BEGIN PRIVATE KEY") == 1


@pytest.mark.parametrize("text", ["", "hello", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"])
def test_a_file_that_is_no_key_says_how_to_make_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="barnabas tunnel keygen"):
        load(path, Role.SERVE)
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "missing", Role.SERVE)


def test_an_identity_never_shows_its_secret(tmp_path: Path) -> None:
    create(tmp_path / "key")
    identity = load(tmp_path / "key", Role.SERVE)
    assert "BEGIN" not in repr(identity) + str(identity)
