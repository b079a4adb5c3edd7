"""Kafka's errors in our words: every code the client knows, what heals by itself and what a person must mend."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from barnabas.errors import AccessDenied, BarnabasError, Refused, TooLarge, Unavailable, Untimely
from barnabas.kafka.errors import MEANINGS, explained
from barnabas.kafka.producer import TRANSACTION_SECONDS


def words(text: str) -> list[str]:
    return text.split()


CODES = {
    name: code for name in dir(KafkaError) if name.isupper() and isinstance(code := getattr(KafkaError, name), int)
}
# Kafka's protocol guide calls these retriable.
RETRIABLE = words("""
    INVALID_MSG UNKNOWN_TOPIC_OR_PART LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION REQUEST_TIMED_OUT
    REPLICA_NOT_AVAILABLE NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR
    NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND NOT_CONTROLLER CONCURRENT_TRANSACTIONS KAFKA_STORAGE_ERROR
    FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH LISTENER_NOT_FOUND FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH
    OFFSET_NOT_AVAILABLE PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED
    UNSTABLE_OFFSET_COMMIT THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID
""")
# A new epoch with new clients heals these, or finds out in its survey what is really wrong.
HEALED = words("""
    _TRANSPORT _ALL_BROKERS_DOWN _TIMED_OUT _MSG_TIMED_OUT _FAIL _RETRY _FATAL _STATE _FENCED _PURGE_QUEUE
    _GAPLESS_GUARANTEE _UNKNOWN_TOPIC _UNKNOWN_PARTITION _RESOLVE PRODUCER_FENCED
    INVALID_PRODUCER_EPOCH INVALID_TXN_STATE TRANSACTION_ABORTABLE UNKNOWN_PRODUCER_ID OUT_OF_ORDER_SEQUENCE_NUMBER
    UNKNOWN BROKER_NOT_AVAILABLE
""")
MENDED = words("""
    RECORD_LIST_TOO_LARGE INVALID_RECORD TOPIC_AUTHORIZATION_FAILED
    CLUSTER_AUTHORIZATION_FAILED TRANSACTIONAL_ID_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED POLICY_VIOLATION
    UNSUPPORTED_SASL_MECHANISM INVALID_REPLICATION_FACTOR INVALID_CONFIG INVALID_PARTITIONS TOPIC_EXCEPTION
    INVALID_TRANSACTION_TIMEOUT UNSUPPORTED_VERSION SECURITY_DISABLED _INVALID_ARG _UNSUPPORTED_FEATURE
    TOPIC_ALREADY_EXISTS UNSUPPORTED_FOR_MESSAGE_FORMAT
""")
# Secrets and certificates rotate: tried again for some minutes, then a person must look.
DENIED = words("_AUTHENTICATION _SSL SASL_AUTHENTICATION_FAILED")


def kind_of(name: str) -> type[BarnabasError]:
    return type(explained(KafkaError(CODES[name]), "here"))


def test_the_client_tells_us_its_codes() -> None:
    assert len(CODES) > 150
    assert set(RETRIABLE + HEALED + MENDED + DENIED) <= set(CODES)


@pytest.mark.parametrize("name", CODES)
def test_every_code_becomes_one_of_our_errors_and_a_sentence(name: str) -> None:
    error = explained(KafkaError(CODES[name], "said so"), 'cluster "grape"')
    assert type(error) in (Unavailable, AccessDenied, Refused, TooLarge, Untimely)
    assert str(error).startswith('cluster "grape": said so')
    assert str(error).endswith((")", "]")), "neither a meaning nor the code's name"


@pytest.mark.parametrize("name", [*RETRIABLE, *HEALED])
def test_what_may_heal_by_itself_is_tried_again(name: str) -> None:
    assert kind_of(name) is Unavailable


@pytest.mark.parametrize("name", DENIED)
def test_a_cluster_that_does_not_let_us_in_is_tried_again_for_some_minutes(name: str) -> None:
    assert kind_of(name) is AccessDenied


@pytest.mark.parametrize("name", MENDED)
def test_what_a_person_must_mend_is_refused(name: str) -> None:
    assert kind_of(name) is Refused


def test_a_record_that_a_broker_refuses_for_its_size_or_timestamp_has_an_error_of_its_own() -> None:
    assert kind_of("MSG_SIZE_TOO_LARGE") is TooLarge and issubclass(TooLarge, Refused)
    assert kind_of("INVALID_TIMESTAMP") is Untimely and issubclass(Untimely, Refused)


@pytest.mark.parametrize("code", MEANINGS)
def test_every_meaning_is_about_a_code_that_exists_and_says_something(code: int) -> None:
    assert code in CODES.values()
    assert len(MEANINGS[code][1]) > 10


def test_a_code_that_is_not_in_the_table_is_judged_by_what_librdkafka_says_of_it() -> None:
    unknown = CODES["ILLEGAL_GENERATION"]
    assert unknown not in MEANINGS
    assert type(explained(KafkaError(unknown, "x", False, True), "here")) is Unavailable
    refused = explained(KafkaError(unknown, "x", False, False), "here")
    assert type(refused) is Refused and str(refused) == "here: x [ILLEGAL_GENERATION]"


def test_an_exception_is_explained_like_the_error_in_it() -> None:
    error = KafkaError(KafkaError.NOT_ENOUGH_REPLICAS, "too few")
    assert str(explained(KafkaException(error), "here")) == "here: too few (too few in-sync replicas)"


def test_a_broker_that_allows_too_short_transactions_is_told_how_long_ours_are() -> None:
    assert f"below {TRANSACTION_SECONDS} seconds" in MEANINGS[KafkaError.INVALID_TRANSACTION_TIMEOUT][1]
