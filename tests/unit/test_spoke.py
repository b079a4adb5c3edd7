"""What a mux tells of where a record came from; and what is wrong with headers that name no place."""

import pytest

from barnabas.spoke import BOOTSTRAP, IDENTIFIER, PARTITION, PARTITIONS, TOPIC, misplaced

GOOD: dict[str, bytes | None] = {TOPIC: b"orders", PARTITION: b"1", BOOTSTRAP: b"b:1", IDENTIFIER: b"eu"}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({TOPIC: None}, "header MUX_SOURCE_TOPIC is empty"),
        ({PARTITION: b"two"}, "header MUX_SOURCE_TOPIC_PARTITION holds 'two', no partition from 0 to 9,999"),
        ({PARTITION: b"\xff\n"}, r"holds '\\xff\n', no partition"),
        ({PARTITION: b"10000"}, "holds '10000', no partition"),
        ({PARTITIONS: b"1"}, "header MUX_SOURCE_TOPIC_PARTITIONS holds '1', no count of partitions above 1"),
        ({PARTITIONS: b"10001"}, "holds '10001', no count of partitions above 1 and up to 10,000"),
        ({TOPIC: b"a b"}, "header MUX_SOURCE_TOPIC holds 'a b': with it and MUX_SOURCE_IDENTIFIER 'eu', `to` makes no"),
        ({TOPIC: b"x" * 300}, f"holds '{'x' * 60}...':"),
    ],
)
def test_the_reason_names_the_header_and_what_it_held(changed: dict[str, bytes | None], says: str) -> None:
    assert says in misplaced(list({**GOOD, **changed}.items()))


def test_a_header_that_is_not_there_is_called_missing_and_of_two_the_last_is_named() -> None:
    assert misplaced([("own", b"1")]) == "header MUX_SOURCE_TOPIC is missing"
    assert misplaced([(TOPIC, b"orders")]) == "header MUX_SOURCE_TOPIC_PARTITION is missing"
    twice = [*GOOD.items(), (PARTITION, b"last")]
    assert "holds 'last'" in misplaced(twice)
    assert "and no MUX_SOURCE_IDENTIFIER" in misplaced([(TOPIC, b"!"), (PARTITION, b"0")])
