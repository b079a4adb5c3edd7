"""Subjects are named as the real serializers name them, and follow their topic's new name."""

import json

import pytest

from barnabas.errors import Refused
from barnabas.schemas.schema import Schema
from barnabas.schemas.settings import SchemaRules, Strategy, TopicRoute
from barnabas.schemas.subjects import Pair, known_ahead, record_name, renamed, subject_pair

ORDER = Schema('{"type":"record","name":"Order","namespace":"com.shop","fields":[]}')
ROUTE = TopicRoute(7, "orders", "orders.copy")


@pytest.mark.parametrize(
    ("strategy", "side", "pair"),
    [
        ("topic-name", "value", Pair("orders-value", "orders.copy-value")),
        ("topic-name", "key", Pair("orders-key", "orders.copy-key")),
        ("record-name", "value", Pair("com.shop.Order", "com.shop.Order")),
        ("topic-record-name", "key", Pair("orders-com.shop.Order", "orders.copy-com.shop.Order")),
    ],
)
def test_each_strategy_names_both_ends(strategy: Strategy, side: str, pair: Pair) -> None:
    assert subject_pair(SchemaRules(strategy=strategy), ROUTE, "key" if side == "key" else "value", ORDER) == pair


def test_a_fixed_subject_is_fed_from_any_and_needs_mode_ids() -> None:
    rules = SchemaRules(strategy="fixed", subject="all", mode="ids")
    assert subject_pair(rules, ROUTE, "value", ORDER) == Pair(None, "all")
    with pytest.raises(ValueError, match="needs mode ids"):
        SchemaRules(strategy="fixed", subject="all", mode="lenient")
    with pytest.raises(ValueError, match="go together"):
        SchemaRules(strategy="fixed", mode="ids")


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        (ORDER, "com.shop.Order"),
        (Schema('{"type":"record","name":"a.b.Order","namespace":"ignored","fields":[]}'), "a.b.Order"),
        (Schema('{"type":"enum","name":"Colour","symbols":[]}'), "Colour"),
        (Schema('"string"'), "string"),
        (Schema("long"), "long"),
        (Schema('{"type":"bytes"}'), "bytes"),
        (Schema('{"title":"Order","type":"object"}', "JSON"), "Order"),
        (Schema('syntax="proto3"; package com.shop; message Order {}', "PROTOBUF"), "com.shop.Order"),
        (Schema('syntax="proto3"; message Order { message Inner {} }', "PROTOBUF"), "Order"),
        (
            Schema(
                '/* message Not {} */ syntax = "proto3"; // package no;\noption x = "package a; message B {";'
                "package shop; enum E { message = 0; } message Order {} message Second {}",
                "PROTOBUF",
            ),
            "shop.Order",
        ),
    ],
)
def test_the_record_name_of_every_kind_of_schema(schema: Schema, name: str) -> None:
    assert record_name(schema) == name


@pytest.mark.parametrize(
    "schema",
    [
        Schema(json.dumps(["null", "string"])),
        Schema('{"type":"object"}', "JSON"),
        Schema('syntax="proto3"; enum E { A = 0; }', "PROTOBUF"),
    ],
)
def test_a_schema_without_a_name_is_refused_with_a_remedy(schema: Schema) -> None:
    with pytest.raises(Refused, match=f"a {schema.type} schema has no record name .* is subjects: topic-name meant"):
        record_name(schema)


@pytest.mark.parametrize(
    ("subject", "strategy", "name"),
    [
        ("a-value", "topic-name", "x-value"),
        ("a-key", "topic-name", "x-key"),
        ("a-other", "topic-name", "a-other"),
        ("b-value", "topic-name", "b-value"),
        ("a-b-value", "topic-name", "y-value"),
        ("a-b-Order", "topic-record-name", "y-Order"),
        ("a-Order", "topic-record-name", "x-Order"),
        ("a-value", "record-name", "a-value"),
    ],
)
def test_a_subject_that_is_referred_to_follows_its_topic(subject: str, strategy: Strategy, name: str) -> None:
    assert renamed(subject, strategy, {"a": "x", "a-b": "y"}) == name


def test_what_is_certain_before_any_record() -> None:
    subjects = ["a-value", "a-key", "a-b-value", "a-Order", "a-b-Order", "Order", "aa-value"]
    topics = {"a": "x", "a-b": "y"}
    assert known_ahead(SchemaRules(), topics, subjects) == (Pair("a-value", "x-value"), Pair("a-b-value", "y-value"))
    both = SchemaRules(key="auto")
    assert known_ahead(both, {"a": "x"}, subjects) == (Pair("a-key", "x-key"), Pair("a-value", "x-value"))
    by_record = known_ahead(SchemaRules(strategy="topic-record-name"), topics, subjects)
    assert Pair("a-Order", "x-Order") in by_record
    assert Pair("a-b-Order", "y-Order") in by_record
    assert Pair("a-b-Order", "x-b-Order") not in by_record
    assert known_ahead(SchemaRules(strategy="record-name"), topics, subjects) == ()
