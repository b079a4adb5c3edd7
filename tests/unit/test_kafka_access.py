"""When it is certain that a cluster does not let us in, by what a client's error callback reports."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from barnabas.errors import AccessDenied
from barnabas.kafka.access import SURE_SECONDS, SURE_TIMES, Access
from barnabas.model import Connection

NOWHERE = Connection("orange", "127.0.0.1:1", {"bootstrap.servers": "127.0.0.1:1"})
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
WRONG = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: Invalid username or password")
REFUSED = KafkaError(KafkaError._TRANSPORT, "Connect to ipv4#127.0.0.1:1 failed: Connection refused")
ALERT = KafkaError(KafkaError._TRANSPORT, "Receive failed: ssl/tls alert bad certificate: SSL alert number 42")
TOKEN = "Failed to acquire SASL OAUTHBEARER token: "
CLIENT = KafkaError(KafkaError._AUTHENTICATION, f'{TOKEN}{{"error":"invalid_client"}}')
SILENT = KafkaError(KafkaError._AUTHENTICATION, f"{TOKEN}Failed to connect to 127.0.0.1:1: Could not connect to server")


def denied(*reported: KafkaError, seconds: float = SURE_SECONDS) -> AccessDenied | None:
    access = Access(NOWHERE)
    for error in reported:
        access.note(error)
    return access.denied("here", seconds)


@pytest.mark.parametrize(
    ("reported", "remedy"),
    [
        ([DOWN, *[WRONG] * SURE_TIMES], "are user and password right?"),
        ([DOWN, *[ALERT] * SURE_TIMES], "`certificate` and `key` under `tls`"),
        ([CLIENT], "are `client_id`, `client_secret` and `scope` right?"),
    ],
)
def test_a_cause_that_is_certain_is_told_with_its_remedy(reported: list[KafkaError], remedy: str) -> None:
    found = denied(*reported)
    assert found is not None and str(found) == f"here: {reported[-1].str()}: {found.args[0].rpartition(': ')[2]}"
    assert remedy in str(found)


@pytest.mark.parametrize(
    ("reported", "seconds"),
    [
        ([DOWN, REFUSED, REFUSED], 30.0),  # a broker that is being restarted
        ([DOWN, WRONG], 30.0),  # a password that is being replaced
        ([WRONG, WRONG], 30.0),  # one broker of several: another may answer
        ([DOWN, WRONG, WRONG], SURE_SECONDS / 2),
        ([SILENT, SILENT], 30.0),  # a token endpoint that does not answer knows nothing of our secret
        ([], 30.0),
    ],
)
def test_what_may_be_over_in_a_moment_is_not_certain(reported: list[KafkaError], seconds: float) -> None:
    assert denied(*reported, seconds=seconds) is None


def test_an_answer_makes_what_was_reported_before_old() -> None:
    access = Access(NOWHERE)
    for error in (DOWN, WRONG, WRONG):
        access.note(error)
    access.answered()
    assert access.denied("here", 30.0) is None and access.last == ""
