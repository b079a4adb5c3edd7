"""How clients must come to a lab's brokers: the broker's properties and the client's settings for it."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas.lab.certificates import Certificates


class Protocol(StrEnum):
    """Kafka's security.protocol."""

    PLAINTEXT = "PLAINTEXT"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SSL = "SSL"
    SASL_SSL = "SASL_SSL"


class Mechanism(StrEnum):
    """Kafka's sasl.mechanism."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


def _one_user() -> dict[str, str]:
    return {"barnabas": secrets.token_urlsafe(18)}


@dataclass(frozen=True)
class Security:
    """What a cluster asks of its clients; without users given, one with a random password."""

    protocol: Protocol = Protocol.PLAINTEXT
    mechanism: Mechanism = Mechanism.PLAIN
    users: Mapping[str, str] = field(default_factory=_one_user, repr=False)
    mutual_tls: bool = False
    signing_keys: str | None = None  # OAUTHBEARER: the URL of the keys that tokens are signed with

    @property
    def sasl(self) -> bool:
        return self.protocol in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL)

    @property
    def scram(self) -> bool:
        return self.sasl and self.mechanism in (Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512)

    @property
    def tls(self) -> bool:
        return self.protocol in (Protocol.SSL, Protocol.SASL_SSL)

    def broker_properties(self, listener: str, certificates: Certificates | None) -> dict[str, str]:
        """The server properties of the listener that clients use."""
        properties: dict[str, str] = {}
        if self.sasl:
            properties["sasl.enabled.mechanisms"] = self.mechanism
            properties[f"{self.mechanism.lower()}.sasl.jaas.config"] = self._jaas()
        if self.signing_keys:
            properties[f"{self.mechanism.lower()}.sasl.server.callback.handler.class"] = _OAUTH_VALIDATOR
            properties["sasl.oauthbearer.jwks.endpoint.url"] = self.signing_keys
        if certificates:
            properties["ssl.keystore.type"] = properties["ssl.truststore.type"] = "PEM"
            properties["ssl.keystore.location"] = str(certificates.server)
            properties["ssl.truststore.location"] = str(certificates.ca)
            properties["ssl.client.auth"] = "required" if self.mutual_tls else "none"
        return {f"listener.name.{listener.lower()}.{key}": value for key, value in properties.items()}

    def jvm_options(self) -> list[str]:
        """A broker fetches keys only from where it is told that it may."""
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.signing_keys}"] if self.signing_keys else []

    def client_settings(self, certificates: Certificates | None, user: str | None = None) -> dict[str, str]:
        """The settings, in librdkafka's names, of a client that is let in; as the first user if none is named."""
        settings = {"security.protocol": str(self.protocol)}
        if self.sasl:
            user = user or next(iter(self.users))
            settings |= {"sasl.mechanism": self.mechanism, "sasl.username": user, "sasl.password": self.users[user]}
        if certificates:
            settings["ssl.ca.location"] = str(certificates.ca)
            if self.mutual_tls:
                settings["ssl.certificate.location"] = str(certificates.client)
                settings["ssl.key.location"] = str(certificates.client_key)
        return settings

    def _jaas(self) -> str:
        if self.mechanism is Mechanism.OAUTHBEARER:
            return f'{_OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";'
        if self.scram:
            return "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        users = " ".join(f"user_{name}={_quoted(password)}" for name, password in self.users.items())
        return f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"


_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


_OAUTH_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
