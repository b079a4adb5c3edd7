"""Kafka's errors in our words, from one table.

"Fenced" is Unavailable here: it may also mean "too slow". Whether another run has taken over, only the ledger tells.
What is not in the table is Unavailable when librdkafka calls it retriable, and Refused otherwise.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from barnabas.errors import AccessDenied, BarnabasError, Refused, TooLarge, Unavailable, Untimely

_E = KafkaError
MEANINGS: dict[int, tuple[type[BarnabasError], str]] = {
    _E._TRANSPORT: (Unavailable, "the connection broke"),
    _E._ALL_BROKERS_DOWN: (Unavailable, "no broker answers: is the address right and the cluster up?"),
    _E._RESOLVE: (Unavailable, "a broker's name does not resolve: is it reachable only through a tunnel?"),
    _E._TIMED_OUT: (Unavailable, "no answer in time: is the cluster up, and does the listener speak what we speak?"),
    _E._MSG_TIMED_OUT: (Unavailable, "records were not acknowledged in time"),
    _E._TIMED_OUT_QUEUE: (Unavailable, "a request waited too long to be sent"),
    _E._WAIT_COORD: (Unavailable, "the transaction coordinator is not known yet"),
    _E._WAIT_CACHE: (Unavailable, "metadata is not known yet"),
    _E._NOENT: (Unavailable, "a partition has no leader now: is its broker being restarted?"),
    _E._DESTROY: (Unavailable, "the client was closed meanwhile"),
    _E._PURGE_QUEUE: (Unavailable, "records were dropped by an abort"),
    _E._PURGE_INFLIGHT: (Unavailable, "records in flight were dropped by an abort"),
    _E._SSL: (AccessDenied, "TLS failed: is `tls.ca` the authority that signed the broker's certificate?"),
    _E._AUTHENTICATION: (AccessDenied, "are user and password right?"),
    _E._FAIL: (Unavailable, "the connection broke"),
    _E._RETRY: (Unavailable, "it must be tried again"),
    _E._INTR: (Unavailable, "it was interrupted"),
    _E._FATAL: (Unavailable, "the producer is of no use any more: a new epoch begins with a new one"),
    _E._STATE: (Unavailable, "the client is in another state than we thought: a new epoch begins with a new one"),
    _E._GAPLESS_GUARANTEE: (Unavailable, "records would have been out of order: they are copied again"),
    _E._INCONSISTENT: (Unavailable, "the producer lost track of its records: they are copied again"),
    _E._QUEUE_FULL: (Unavailable, "the client's queue is full"),
    _E._ISR_INSUFF: (Unavailable, "too few in-sync replicas"),
    _E._IN_PROGRESS: (Unavailable, "the same call is still under way"),
    _E._PREV_IN_PROGRESS: (Unavailable, "the call before it is still under way"),
    _E._OUTDATED: (Unavailable, "the answer came too late"),
    _E._BAD_MSG: (Unavailable, "an answer was damaged on its way"),
    _E._UNDERFLOW: (Unavailable, "an answer was cut off on its way"),
    _E._PARTIAL: (Unavailable, "only a part of the answer came"),
    _E._DESTROY_BROKER: (Unavailable, "a broker left the cluster"),
    _E._UNKNOWN_BROKER: (Unavailable, "a broker left the cluster"),
    _E._CRIT_SYS_RESOURCE: (Unavailable, "this machine lacks memory or threads"),
    _E._INVALID_ARG: (Refused, "the client does not take a setting: look at `settings`, `consumer` and `producer`"),
    _E._INVALID_DIFFERENT_RECORD: (Refused, "another record of the batch was found invalid"),
    _E._FENCED: (Unavailable, "another producer uses our transactional id: the ledger tells who"),
    _E._UNKNOWN_TOPIC: (Unavailable, "there is no such topic, or the brokers do not know it yet"),
    _E._UNKNOWN_PARTITION: (Unavailable, "there is no such partition, or the brokers do not know it yet"),
    _E.PRODUCER_FENCED: (Unavailable, "another producer uses our transactional id: the ledger tells who"),
    _E.INVALID_PRODUCER_EPOCH: (
        Unavailable,
        "another producer uses our transactional id, or we were too slow: the ledger tells",
    ),
    _E.TRANSACTION_COORDINATOR_FENCED: (Unavailable, "the transaction coordinator moved"),
    _E.COORDINATOR_LOAD_IN_PROGRESS: (Unavailable, "the coordinator is loading"),
    _E.COORDINATOR_NOT_AVAILABLE: (Unavailable, "there is no coordinator now"),
    _E.NOT_COORDINATOR: (Unavailable, "the coordinator moved"),
    _E.CONCURRENT_TRANSACTIONS: (Unavailable, "the last transaction is still being completed"),
    _E.INVALID_TXN_STATE: (Unavailable, "the transaction was ended meanwhile"),
    _E.INVALID_PRODUCER_ID_MAPPING: (Unavailable, "the producer's id expired"),
    _E.UNKNOWN_PRODUCER_ID: (Unavailable, "the producer's id expired"),
    _E.OUT_OF_ORDER_SEQUENCE_NUMBER: (Unavailable, "the broker lost track of the producer"),
    _E.LEADER_NOT_AVAILABLE: (Unavailable, "a partition has no leader now"),
    _E.NOT_LEADER_FOR_PARTITION: (Unavailable, "a partition's leader moved"),
    _E.NOT_ENOUGH_REPLICAS: (Unavailable, "too few in-sync replicas"),
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (Unavailable, "too few in-sync replicas"),
    _E.REQUEST_TIMED_OUT: (Unavailable, "the broker took too long"),
    _E.BROKER_NOT_AVAILABLE: (Unavailable, "a broker is not available"),
    _E.REPLICA_NOT_AVAILABLE: (Unavailable, "a replica is not available"),
    _E.NETWORK_EXCEPTION: (Unavailable, "the connection broke"),
    _E.NOT_CONTROLLER: (Unavailable, "the controller moved"),
    _E.UNKNOWN: (Unavailable, "the broker failed and did not say why: its log does"),
    _E.INVALID_MSG: (Unavailable, "a request was damaged on its way"),
    _E.STALE_CTRL_EPOCH: (Unavailable, "the controller moved"),
    _E.STALE_BROKER_EPOCH: (Unavailable, "a broker has just been restarted"),
    _E.LISTENER_NOT_FOUND: (Unavailable, "a partition's leader has no such listener yet"),
    _E.FETCH_SESSION_ID_NOT_FOUND: (Unavailable, "a broker forgot us: it was restarted"),
    _E.INVALID_FETCH_SESSION_EPOCH: (Unavailable, "a broker forgot us: it was restarted"),
    _E.FENCED_LEADER_EPOCH: (Unavailable, "a partition's leader moved"),
    _E.UNKNOWN_LEADER_EPOCH: (Unavailable, "a partition's leader moved"),
    _E.PREFERRED_LEADER_NOT_AVAILABLE: (Unavailable, "a partition has no leader now"),
    _E.ELIGIBLE_LEADERS_NOT_AVAILABLE: (Unavailable, "a partition has no leader now"),
    _E.ELECTION_NOT_NEEDED: (Unavailable, "a partition's leader moved"),
    _E.OFFSET_NOT_AVAILABLE: (Unavailable, "a new leader does not know the log's end yet"),
    _E.REASSIGNMENT_IN_PROGRESS: (Unavailable, "the topic's partitions are being moved"),
    _E.UNSTABLE_OFFSET_COMMIT: (Unavailable, "a transaction is still being completed"),
    _E.TRANSACTION_ABORTABLE: (Unavailable, "the broker gave the transaction up: its records are copied again"),
    _E.DUPLICATE_SEQUENCE_NUMBER: (Unavailable, "the broker lost track of the producer"),
    _E.THROTTLING_QUOTA_EXCEEDED: (Unavailable, "the cluster's quota for such changes is used up for now"),
    _E.OPERATION_NOT_ATTEMPTED: (Unavailable, "the broker did not get to it"),
    _E.UNKNOWN_TOPIC_ID: (Unavailable, "the topic was deleted, or the brokers do not know it yet"),
    _E.INCONSISTENT_TOPIC_ID: (Unavailable, "the topic was deleted and made anew"),
    _E.REBOOTSTRAP_REQUIRED: (Unavailable, "what we know of the cluster is out of date"),
    _E.KAFKA_STORAGE_ERROR: (Unavailable, "a broker's disk failed or is full"),
    _E.UNKNOWN_TOPIC_OR_PART: (Unavailable, "there is no such topic or partition, or the brokers do not know it yet"),
    _E.MSG_SIZE_TOO_LARGE: (TooLarge, "a record is larger than the topic allows: raise its max.message.bytes"),
    _E.RECORD_LIST_TOO_LARGE: (Refused, "a batch is larger than the topic's segments"),
    _E.INVALID_TIMESTAMP: (Untimely, "a timestamp is outside what the topic's message.timestamp.*.max.ms allow"),
    _E.INVALID_RECORD: (Refused, "the broker found a record invalid: a compacted topic takes no record without a key"),
    _E.TOPIC_AUTHORIZATION_FAILED: (Refused, "not allowed on this topic: grant it"),
    _E.CLUSTER_AUTHORIZATION_FAILED: (Refused, "not allowed on this cluster: grant it"),
    _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (Refused, "not allowed to use our transactional ids: grant barnabas.*"),
    _E.GROUP_AUTHORIZATION_FAILED: (Refused, "not allowed to use a consumer group: grant barnabas*"),
    _E.SASL_AUTHENTICATION_FAILED: (AccessDenied, "are user and password right?"),
    _E.UNSUPPORTED_SASL_MECHANISM: (Refused, "the broker does not offer this SASL mechanism"),
    _E.UNSUPPORTED_FOR_MESSAGE_FORMAT: (Refused, "the topic's message format is too old for headers or transactions"),
    _E.POLICY_VIOLATION: (Refused, "the cluster's policy forbids it"),
    _E.INVALID_REPLICATION_FACTOR: (
        Refused,
        "the cluster has too few brokers for so many replicas: lower `topics.replication` or `ledger.replication`",
    ),
    _E.INVALID_CONFIG: (Refused, "the cluster does not accept a topic setting"),
    _E.INVALID_PARTITIONS: (Refused, "the cluster does not accept this number of partitions"),
    _E.TOPIC_EXCEPTION: (Refused, "the cluster does not accept the topic's name"),
    _E.INVALID_TRANSACTION_TIMEOUT: (Refused, "the broker's transaction.max.timeout.ms is below 180 seconds: raise it"),
}


def explained(error: KafkaError | KafkaException, where: str) -> BarnabasError:
    """The error as one of ours: `where: what Kafka said (what it means)`."""
    cause: KafkaError = error.args[0] if isinstance(error, KafkaException) else error
    kind, meaning = MEANINGS.get(cause.code(), (None, None))
    if kind is None:
        kind = Unavailable if cause.retriable() else Refused
    return kind(f"{where}: {cause.str()}" + (f" ({meaning})" if meaning else f" [{cause.name()}]"))
