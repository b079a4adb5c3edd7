"""Mutual TLS and OAUTHBEARER, on both sides and so for both of our clients, from one block each."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from barnabas.lab.security import Mechanism, Protocol, Security
from tests.barnabas_runs import QUICK, ran
from tests.kafka_io import Record, create_topic, produce, read_all

CLIENT, SECRET = "barnabas", "canary-5e1f-Trumpetfish"
RECORDS = [Record(b"k", b"%d" % i, (), 1000 + i, i % 2) for i in range(100)]


KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def encoded(data: bytes | str | int) -> str:
    raw = data.encode() if isinstance(data, str) else data
    raw = raw.to_bytes((raw.bit_length() + 7) // 8, "big") if isinstance(raw, int) else raw
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token() -> str:
    now = int(time.time())
    claims = {"sub": CLIENT, "iat": now, "exp": now + 600, "scope": "kafka"}
    text = ".".join(encoded(json.dumps(part)) for part in ({"alg": "RS256", "typ": "JWT", "kid": "k"}, claims))
    return f"{text}.{encoded(KEY.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


class TokenEndpoint(BaseHTTPRequestHandler):
    """Gives a token to the one client that knows its secret, and its public key to anybody."""

    given = 0

    def do_GET(self) -> None:
        public = KEY.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "n": encoded(public.n), "e": encoded(public.e)}
        self._answer({"keys": [key]})

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
        wanted = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        allowed = self.headers.get("Authorization", "").removeprefix("Basic ") == wanted
        if not allowed or body.get("grant_type") != ["client_credentials"]:
            self.send_response(401)
            self.end_headers()
            return
        self._answer({"access_token": token(), "token_type": "bearer", "expires_in": 600})
        type(self).given += 1

    def _answer(self, content: object) -> None:
        answer = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        pass


@pytest.fixture
def token_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), TokenEndpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()


def test_mutual_tls_and_oauthbearer_work_for_reading_and_for_writing(tmp_path: Path, token_url: str) -> None:
    guard = Guard(tmp_path / "lab")
    with (
        KafkaCluster(tmp_path / "lab", "certified", security=Security(Protocol.SSL, mutual_tls=True)) as certified,
        KafkaCluster(
            tmp_path / "lab",
            "bearer",
            security=Security(Protocol.SASL_PLAINTEXT, Mechanism.OAUTHBEARER, {}, signing_keys=token_url),
        ) as bearer,
    ):
        there = oauth_settings(bearer, token_url)
        for where, topic in ((certified.client_settings(), "there"), (there, "back")):
            create_topic(where, topic, partitions=2)
            produce(where, topic, RECORDS)
        file = configuration(tmp_path, certified, bearer, token_url)
        code, run = ran(tmp_path, "run", "--until-caught-up", "-c", file, CLIENT_SECRET=SECRET)
        assert code == 0, run.messages
        for where, topic in ((there, "there"), (certified.client_settings(), "back")):
            assert sorted(record.value or b"" for record in read_all(where, topic)) == sorted(
                r.value or b"" for r in RECORDS
            )
        assert SECRET not in run.output + run.messages
        code, wrong = ran(tmp_path, "status", "-c", file, CLIENT_SECRET="wrong")
        assert code == 1
        assert 'cluster "bearer"' in wrong.messages
    guard.end()
    assert TokenEndpoint.given > 2


def oauth_settings(cluster: KafkaCluster, token_url: str) -> dict[str, str]:
    return {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": token_url,
        "sasl.oauthbearer.client.id": CLIENT,
        "sasl.oauthbearer.client.secret": SECRET,
    }


def configuration(directory: Path, certified: KafkaCluster, bearer: KafkaCluster, token_url: str) -> Path:
    assert certified.certificates
    tls = {
        "ca": str(certified.certificates.ca),
        "certificate": str(certified.certificates.client),
        "key": str(certified.certificates.client_key),
    }
    sasl = {
        "mechanism": "OAUTHBEARER",
        "token_url": token_url,
        "client_id": CLIENT,
        "client_secret": "env:CLIENT_SECRET",
    }
    content = {
        "spark": QUICK,
        "clusters": {
            "certified": {"bootstrap": certified.bootstrap, "tls": tls},
            "bearer": {"bootstrap": bearer.bootstrap, "sasl": sasl},
        },
        "groups": [
            {
                "name": "credentials",
                "mirrors": [
                    {"name": "there", "source": "certified", "destination": "bearer", "from": "there"},
                    {"name": "back", "source": "bearer", "destination": "certified", "from": "back"},
                ],
            }
        ],
    }
    file = directory / "credentials.yaml"
    file.write_text(yaml.safe_dump(content))
    return file
