"""Why a query ended, and how patient we are with it."""

from __future__ import annotations

import inspect
import re

import pytest

from barnabas import errors, failures
from barnabas.errors import AccessDenied, BadRecord, BarnabasError, Fenced, Lost, Refused, Unavailable
from barnabas.failures import BatchTooLarge, Unexplained, Unreadable, explained
from barnabas.model import Partition
from barnabas.patience import (
    DENIED_CATCH_UP_SECONDS,
    DENIED_SECONDS,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    UNEXPLAINED_TRIES,
    Patience,
)
from barnabas.schemas.answers import Conflict
from barnabas.worker.task import marked, unmarked

STACK = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: Task 0 in stage \
3.0 failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 (TID 5) (127.0.0.1 executor driver): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/barnabas/worker/write.py", line 44, in write
    raise marked(error) from None
RuntimeError: {marker}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.util.concurrent.TimeoutException: RuntimeError: {marker}
\t... 1 more SQLSTATE: XXKST"""
OURS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, BarnabasError)]
SAYINGS = ["plain", 'quotes " and \\ and {braces} }', "two\nlines\tand a tab", "größe → 1…2 \U0001f4e8", "}", ""]


SPARK_SAYS: list[tuple[str, type[BarnabasError], str]] = [
    ("x\norg.apache.kafka.common.errors.TopicAuthorizationException: Not authorized: [a]\ny", Refused, "grant it"),
    ("o.a.k.common.errors.SaslAuthenticationException: Authentication failed", AccessDenied, "credentials"),
    ("javax.net.ssl.SSLHandshakeException: PKIX path building failed", AccessDenied, "CA right"),
    (
        "org.apache.arrow.memory.OutOfMemoryException: Failure allocating buffer.",
        BatchTooLarge,
        "too large for one batch",
    ),
    (
        "org.apache.arrow.vector.util.OversizedAllocationException: Unable to expand",
        BatchTooLarge,
        "too large for one batch",
    ),
    (
        "java.lang.OutOfMemoryError: Cannot reserve 9 bytes of direct buffer memory",
        BatchTooLarge,
        "too large for one batch",
    ),
    ("io.netty.util.internal.OutOfDirectMemoryError: failed to allocate", BatchTooLarge, "too large for one batch"),
    (
        "[KAFKA_MALFORMED_RECORD_TIMESTAMP] offset 7 of orders-0",
        Unreadable,
        "offset 7 of orders-0",
    ),
    ("OffsetOutOfRangeException: Fetch position 5", Unavailable, "offsets are gone"),
    ("LogTruncationException: Detected truncated partitions: [orders-0]", Unavailable, "offsets are gone"),
    ("Some data may have been lost because they are not available in Kafka any more", Unavailable, "offsets are"),
    ("UnknownTopicOrPartitionException: This server does not host", Unavailable, "vanished"),
    ("org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms", Unavailable, "does not answer"),
    ("KafkaException: Failed to construct kafka consumer", Unavailable, "cannot be reached"),
    ("SparkException: Python worker exited unexpectedly (crashed)", Unavailable, "a worker died"),
    ("java.net.SocketException: Connection reset", Unavailable, "a worker died"),
    ("Job 3 cancelled because SparkContext was shut down", Unavailable, "Spark is gone"),
    ("Py4JNetworkError: Answer from Java side is empty", Unavailable, "Spark is gone"),
    ("ExecutorLostFailure (executor 3 exited)", Unavailable, "an executor was lost"),
    ("[CAST_INVALID_INPUT] The value 'x' of the type", Refused, "`where` fails on a row"),
    ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column", Refused, "`where` is not right"),
    ("java.io.IOException: No space left on device", Unavailable, "the disk is full"),
    ("RecordTooLargeException: There are some messages at", Refused, "larger than the source client fetches"),
]


def brought_back(error: BarnabasError) -> BarnabasError | None:
    """What the driver makes of an error that a task raised."""
    return unmarked(STACK.format(marker=str(marked(error))))


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("says", SAYINGS)
def test_an_outcome_comes_back_through_a_java_stack_trace_as_it_was(kind: type[BarnabasError], says: str) -> None:
    found = brought_back(kind(says))
    assert type(found) is kind and str(found) == says


def test_what_the_retry_loop_must_know_comes_along() -> None:
    error = Unavailable("it failed itself")
    error.details = {"registry": "grape", "operation": "register", "failures": 3}
    found = brought_back(error)
    assert found is not None and found.details == error.details
    assert BarnabasError.details == {}


def test_an_error_of_a_border_comes_back_as_the_kind_of_ours_that_it_is() -> None:
    found = brought_back(Conflict("subject orders-value"))
    assert type(found) is Refused and str(found) == "subject orders-value"
    assert type(brought_back(Unexplained("x"))) is Unavailable


@pytest.mark.parametrize("marker", ["", "barnabas-outcome", 'barnabas-outcome{"kind": "Fen', "barnabas-outcomes vary"])
def test_a_text_without_a_whole_marker_holds_no_outcome(marker: str) -> None:
    assert unmarked(STACK.format(marker=marker)) is None


def test_a_marker_that_was_cut_off_does_not_hide_a_whole_one() -> None:
    text = f'barnabas-outcome{{"kind": "Fen… {marked(Fenced("epoch 7 is over"))} barnabas-outcome'
    assert str(unmarked(text)) == "epoch 7 is over"


@pytest.mark.parametrize(("text", "kind", "says"), SPARK_SAYS)
def test_a_text_of_spark_is_named_from_the_table(text: str, kind: type[BarnabasError], says: str) -> None:
    error = explained(text, 'mirror "orders"')
    assert type(error) is kind
    assert says in str(error) and str(error).startswith('mirror "orders": ')
    assert "\n" not in str(error)


def test_a_record_that_spark_cannot_bring_is_told_by_its_place() -> None:
    text = "Record at topic a.b-c partition 3 offset 70 has timestamp value 9 that overflows when converting to Spark's"
    error = explained(f"org.apache.spark.SparkArithmeticException: {text}", "here")
    assert isinstance(error, Unreadable) and error.place() == (Partition("a.b-c", 3), 70)


def test_every_row_of_the_table_is_tried_above() -> None:
    untried = [row[0] for row in failures.MEANINGS if not any(re.search(row[0], text) for text, _, _ in SPARK_SAYS)]
    assert untried == []


def test_our_own_outcome_goes_before_whatever_else_the_text_says() -> None:
    error = explained(STACK.format(marker=str(marked(BadRecord("offset 5")))), "here")
    assert type(error) is BadRecord and str(error) == "offset 5"


def test_names_of_topics_and_the_words_of_where_explain_nothing() -> None:
    plan = "=== Streaming Query ===\nCurrent Committed Offsets: {PAYMENT_TIMEOUT-0: 5}\nFilter (x = 'TIMEOUT')"
    error = explained(f"org.apache.arrow.memory.OutOfMemoryException: no room\n{plan}", "here")
    assert isinstance(error, BatchTooLarge)
    assert type(explained(f"odd\n{plan}", "here")) is Unexplained


def test_what_nobody_has_named_shows_its_python_line_and_is_unexplained() -> None:
    error = explained("Traceback\n  File x\nZeroDivisionError: division by zero\n\n\tat java", "here")
    assert type(error) is Unexplained
    assert str(error) == "here: the query failed: ZeroDivisionError: division by zero"
    assert str(explained("odd\nthings", "here")) == "here: the query failed: odd"
    assert str(explained("", "here")) == "here: the query failed: "


def pauses(patience: Patience, failure: BarnabasError, times: int) -> list[float | None]:
    return [patience.after(failure, well=False) for _ in range(times)]


def test_pauses_grow_are_bounded_and_are_never_the_same_for_all() -> None:
    found = [pause for pause in pauses(Patience(gives_up=False), Unavailable("x"), 50) if pause is not None]
    assert len(found) == 50, "a mirror that shall run for ever never gives up on what may heal"
    for at, pause in enumerate(found):
        middle = min(FIRST_PAUSE * 2**at, LONGEST_PAUSE)
        assert 0.5 * middle <= pause <= 1.5 * middle
    assert len(set(found)) == 50


def test_a_pause_is_short_again_after_records_were_copied() -> None:
    patience = Patience(gives_up=False)
    pauses(patience, Unavailable("x"), 20)
    pause = patience.after(Unavailable("x"), well=True)
    assert pause is not None and pause <= 1.5 * FIRST_PAUSE


@pytest.mark.parametrize("failure", [Refused("x"), Fenced("x"), Lost("x"), BadRecord("x"), errors.ConfigError("x")])
def test_a_refusal_is_not_tried_again(failure: BarnabasError) -> None:
    assert Patience(gives_up=False).after(failure, well=True) is None


def test_what_nobody_has_named_is_tried_a_few_times_and_counted_anew_after_progress() -> None:
    patience = Patience(gives_up=False)
    before = pauses(patience, Unexplained("x"), UNEXPLAINED_TRIES - 1)
    assert None not in before
    assert patience.after(Unexplained("x"), well=True) is not None
    assert None not in pauses(patience, Unexplained("x"), UNEXPLAINED_TRIES - 2)
    assert patience.after(Unexplained("x"), well=False) is None


def test_a_run_that_shall_end_gives_up_after_a_while_without_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    ends, runs_on = Patience(gives_up=True), Patience(gives_up=False)
    clock[0] += 179
    assert ends.after(Unavailable("x"), well=False) is not None
    assert ends.after(Unavailable("x"), well=True) is not None
    clock[0] += 179
    assert ends.after(Unavailable("x"), well=False) is not None
    clock[0] += 2
    assert ends.after(Unavailable("x"), well=False) is None
    assert runs_on.after(Unavailable("x"), well=False) is not None


@pytest.mark.parametrize(("gives_up", "seconds"), [(False, DENIED_SECONDS), (True, DENIED_CATCH_UP_SECONDS)])
def test_a_cluster_that_does_not_let_us_in_is_tried_for_minutes_and_not_for_ever(
    gives_up: bool, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    patience, began = Patience(gives_up=gives_up), clock[0]
    while clock[0] - began <= seconds:
        assert patience.after(AccessDenied("wrong password"), well=False) is not None
        clock[0] += 10
    assert patience.after(AccessDenied("wrong password"), well=False) is None


def test_each_rotation_of_a_secret_has_its_own_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    patience = Patience(gives_up=False)
    for _ in range(20):  # the mirror runs in between, without anything to copy
        for _ in range(3):
            assert patience.after(AccessDenied("wrong password"), well=False) is not None
            clock[0] += 30
        clock[0] += 200
