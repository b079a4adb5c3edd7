"""Why a cluster does not let us in. The call that waits only times out; the client's error callback has the cause."""

from __future__ import annotations

from confluent_kafka import KafkaError

from barnabas.errors import AccessDenied
from barnabas.kafka.errors import MEANINGS
from barnabas.kafka.listener import mismatch
from barnabas.model import Connection

SURE_SECONDS = 2.0  # without any answer
SURE_TIMES = 2  # the same cause was reported

DENIALS = (KafkaError._AUTHENTICATION, KafkaError._SSL)
ALERT = "SSL alert number"  # after a handshake of TLS 1.3, where librdkafka reports a broken connection
ACQUIRING = "Failed to acquire SASL OAUTHBEARER token"  # reported once in a long while, and before any connection
# What a token endpoint answers to a client that it knows or does not; anything else may be an outage (RFC 6749, 5.2).
CLIENT_REFUSED = ("invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope", "access_denied")


class Access:
    """What one client's error callback has reported since the client last had an answer."""

    def __init__(self, connection: Connection) -> None:
        self._settings = connection.properties
        self._down = False
        self._denials: list[KafkaError] = []
        self._asked = False
        self.last = ""  # what was reported last of a connection

    def note(self, error: KafkaError) -> None:
        """The error callback."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = True
            return
        self.last = error.str()
        if ACQUIRING in self.last:
            if any(word in self.last for word in CLIENT_REFUSED):
                self._down, self._denials = True, [error] * SURE_TIMES
        elif error.code() in DENIALS or ALERT in self.last:
            self._denials = [*self._denials[1 - SURE_TIMES :], error]

    def answered(self) -> None:
        self._down, self._denials, self._asked, self.last = False, [], False, ""

    def denied(self, where: str, seconds: float) -> AccessDenied | None:
        """Why nothing is answered, after so many seconds without any answer; None while the cause is not certain.

        A broker that is being restarted gives no such cause: connections to it are refused. The listeners are asked
        once, because that takes a moment.
        """
        if seconds < SURE_SECONDS or not self._down:
            return None
        cause = self._denials[-1] if len(self._denials) >= SURE_TIMES else None
        if not self._asked:
            self._asked = True
            reason = mismatch(self._settings, certificate=cause is not None and cause.code() == KafkaError._SSL)
            if reason is not None:
                return AccessDenied(f"{where}: {reason}")
        return AccessDenied(f"{where}: {cause.str()}: {_meaning(cause)}") if cause else None


def _meaning(cause: KafkaError) -> str:
    if ALERT in cause.str():
        return "does the broker accept our certificate? (`certificate` and `key` under `tls`)"
    if ACQUIRING in cause.str():
        return "are `client_id`, `client_secret` and `scope` right?"
    return MEANINGS[cause.code()][1]
