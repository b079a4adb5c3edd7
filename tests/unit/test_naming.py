"""Which topics a mirror takes and what they become."""

from __future__ import annotations

import pytest

from barnabas.config.selection import LONGEST_TOPIC
from barnabas.errors import ConfigError
from barnabas.naming import destination_name, selected
from tests.unit.configurations import mirror

NEAR = ["orders", "dc2.orders", "orders.copy", "orders2", "Orders", "orders-", "xorders"]


def test_a_name_takes_that_topic_and_no_near_name() -> None:
    assert selected(mirror(from_="orders"), NEAR) == ["orders"]
    assert selected(mirror(from_=["orders", "Orders", "absent"]), NEAR) == ["Orders", "orders"]


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("orders", ["orders"]),
        (".*orders", ["dc2.orders", "orders", "xorders"]),
        ("orders|dc2", ["orders"]),
        ("^orders$", ["orders"]),
        ("orders.?", ["orders", "orders-", "orders2"]),
        ("order", []),
    ],
)
def test_a_regular_expression_matches_whole_names(pattern: str, taken: list[str]) -> None:
    assert selected(mirror(from_={"match": pattern}), NEAR) == taken


def test_exceptions_are_whole_names_too() -> None:
    rules = {"match": ["orders.*", ".*orders"], "except": ["orders", "x.*"]}
    assert selected(mirror(from_=rules), NEAR) == ["dc2.orders", "orders-", "orders.copy", "orders2"]


def test_a_topic_given_by_name_is_taken_whatever_the_exceptions_say() -> None:
    assert selected(mirror(from_={"names": ["orders"], "match": "x.*", "except": ".*"}), NEAR) == ["orders"]


INTERNAL = [
    "__consumer_offsets",
    "__transaction_state",
    "_barnabas.orders",
    "_schemas",
    "_confluent-metrics",
    "connect-offsets",
    "orders.quarantine",
    "kafkasql-journal",
]


def test_a_regular_expression_never_takes_an_internal_topic() -> None:
    assert selected(mirror(from_={"match": ".*"}), [*INTERNAL, "orders", "_mine", "connect-me"]) == [
        "_mine",
        "connect-me",
        "orders",
    ]


def test_an_internal_topic_can_be_asked_for_by_name() -> None:
    assert selected(mirror(from_="_schemas"), INTERNAL) == ["_schemas"]


@pytest.mark.parametrize(
    ("to", "topic", "becomes"),
    [
        ("{topic}", "orders", "orders"),
        ("{topic}.copy", "eu.xaz.bills", "eu.xaz.bills.copy"),
        ("{source}.{topic}", "orders", "orange.orders"),
        ("{source}-{destination}_{topic}", "o", "orange-grape_o"),
        ("all", "orders", "all"),
        ("{topic}{topic}", "o", "oo"),
        ({"replace": "eu[.](.*)", "with": r"\1.from-eu"}, "eu.bills", "bills.from-eu"),
        ({"replace": "(?P<x>.)rders", "with": r"\g<x>"}, "orders", "o"),
        ({"replace": "(.*)", "with": r"\1.copy"}, "orders", "orders.copy"),
        ({"replace": ".*", "with": "all"}, "orders", "all"),
        ({"replace": "[.]", "with": "-"}, "eu.xaz.bills", "eu-xaz-bills"),
        ({"replace": "$", "with": ".copy"}, "orders", "orders.copy"),
        ({"replace": "eu[.]", "with": "us."}, "orders", "orders"),
    ],
)
def test_a_destination_name_follows_its_template_or_replacement(to: object, topic: str, becomes: str) -> None:
    assert destination_name(mirror(to=to), topic) == becomes


def test_what_stands_in_a_topics_name_is_not_read_as_a_template() -> None:
    with pytest.raises(ConfigError, match="letters, digits, dots"):
        destination_name(mirror(to="{topic}"), "{source}")


@pytest.mark.parametrize(
    ("to", "topic"),
    [
        ("{topic} copy", "orders"),
        ("{topic}/copy", "orders"),
        ("größe", "orders"),
        ("", "orders"),
        ("{topic}", "."),
        ("{topic}", ".."),
        ("{topic}\n", "orders"),
        ({"replace": "orders", "with": ""}, "orders"),
        ({"replace": "s", "with": "$"}, "orders"),
    ],
)
def test_a_name_that_no_topic_can_have_is_refused(to: object, topic: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits, dots, dashes and underscores only: change `to`") as refused:
        destination_name(mirror(to=to), topic)
    assert f'mirror "m": {topic} would become' in str(refused.value)


def test_a_name_may_be_as_long_as_kafka_allows_and_no_longer() -> None:
    longest = "a" * LONGEST_TOPIC
    assert destination_name(mirror(), longest) == longest
    with pytest.raises(ConfigError, match="250 characters long; Kafka allows 249: change `to`"):
        destination_name(mirror(to="{topic}b"), longest)


@pytest.mark.parametrize("name", INTERNAL)
def test_nothing_becomes_an_internal_topic(name: str) -> None:
    with pytest.raises(ConfigError, match="a name kept for internal topics: change `to`"):
        destination_name(mirror(to=name), "orders")
