"""One neutral cluster block → the properties of both clients: librdkafka's, and the Java client inside Spark."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.cluster import Cluster, Sasl, Scalar
from barnabas.model import Connection

LIBRDKAFKA_DEFAULTS: dict[str, Scalar] = {
    "allow.auto.create.topics": False,
    "socket.keepalive.enable": True,
    "socket.timeout.ms": 20_000,
    "reconnect.backoff.max.ms": 2_000,
    "metadata.recovery.rebootstrap.trigger.ms": 20_000,  # a client that lost every broker it knew asks the first again
    "client.id": "barnabas",
    "log_level": 0,
    "broker.address.family": "any",
}


def connection(name: str, cluster: Cluster, extra: Mapping[str, Scalar] | None = None) -> Connection:
    """How librdkafka reaches the cluster; secrets are read now."""
    properties: dict[str, Scalar] = {**LIBRDKAFKA_DEFAULTS, "bootstrap.servers": cluster.bootstrap}
    properties["security.protocol"] = _protocol(cluster)
    if cluster.tls:
        files = {
            "ssl.ca.location": cluster.tls.ca,
            "ssl.certificate.location": cluster.tls.certificate,
            "ssl.key.location": cluster.tls.key,
        }
        properties |= {key: str(path) for key, path in files.items() if path}
        if cluster.tls.key_password:
            properties["ssl.key.password"] = cluster.tls.key_password.reveal()
    if cluster.sasl:
        properties |= _librdkafka_sasl(cluster.sasl)
    properties |= cluster.settings
    properties |= extra or {}
    return Connection(cluster=name, bootstrap=cluster.bootstrap, properties=properties)


def _protocol(cluster: Cluster) -> str:
    return ("SASL_" if cluster.sasl else "") + ("SSL" if cluster.tls else "PLAINTEXT")


def _librdkafka_sasl(sasl: Sasl) -> dict[str, Scalar]:
    properties: dict[str, Scalar] = {"sasl.mechanism": sasl.mechanism}
    if sasl.mechanism == "OAUTHBEARER":
        assert sasl.client_id and sasl.client_secret and sasl.token_url
        properties |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": sasl.token_url,
            "sasl.oauthbearer.client.id": sasl.client_id.reveal(),
            "sasl.oauthbearer.client.secret": sasl.client_secret.reveal(),
        }
        return properties | ({"sasl.oauthbearer.scope": sasl.scope} if sasl.scope else {})
    assert sasl.username and sasl.password
    return properties | {"sasl.username": sasl.username.reveal(), "sasl.password": sasl.password.reveal()}


def java_properties(cluster: Cluster, extra: Mapping[str, Scalar] | None = None) -> dict[str, str]:
    """What Spark's Kafka source takes, without its `kafka.` prefix; secrets are read now."""
    properties: dict[str, Scalar] = {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": _protocol(cluster),
        "client.id": "barnabas",
    }
    if cluster.tls:
        if cluster.tls.ca:
            properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(cluster.tls.ca)}
        if cluster.tls.certificate and cluster.tls.key:
            chain = cluster.tls.certificate.read_text(encoding="utf-8")
            key = cluster.tls.key.read_text(encoding="utf-8")
            properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
            if cluster.tls.key_password:
                properties["ssl.key.password"] = cluster.tls.key_password.reveal()
    if cluster.sasl:
        properties |= _java_sasl(cluster.sasl)
    properties |= cluster.settings
    properties |= extra or {}
    return {key: _java_text(value) for key, value in properties.items()}


def _java_sasl(sasl: Sasl) -> dict[str, Scalar]:
    properties: dict[str, Scalar] = {"sasl.mechanism": sasl.mechanism}
    if sasl.mechanism == "OAUTHBEARER":
        assert sasl.client_id and sasl.client_secret and sasl.token_url
        options = {"clientId": sasl.client_id.reveal(), "clientSecret": sasl.client_secret.reveal()}
        options |= {"scope": sasl.scope} if sasl.scope else {}
        properties |= {
            "sasl.oauthbearer.token.endpoint.url": sasl.token_url,
            "sasl.login.callback.handler.class": _OAUTH_HANDLER,
            "sasl.jaas.config": _jaas(_OAUTH_MODULE, options),
        }
        return properties
    assert sasl.username and sasl.password
    module = _PLAIN_MODULE if sasl.mechanism == "PLAIN" else _SCRAM_MODULE
    login = _jaas(module, {"username": sasl.username.reveal(), "password": sasl.password.reveal()})
    return properties | {"sasl.jaas.config": login}


_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def _jaas(module: str, options: Mapping[str, str]) -> str:
    quoted = " ".join(f'{key}="{_escaped(value)}"' for key, value in options.items())
    return f"{module} required {quoted};"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _java_text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
