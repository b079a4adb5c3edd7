"""How many partitions the records of a demux may order at the hub."""

import pytest

from barnabas.errors import Refused
from barnabas.hub_topics import MOST_DECLINED, HubTopics
from barnabas.model import TopicDescription
from tests.unit.configurations import mirror


def hub(most: int = 10) -> HubTopics:
    return HubTopics(mirror(kind="demux", source="hub", destination="hub", topics={"create_at_most": most}))


def there(**partitions: int) -> dict[str, TopicDescription]:
    return {name: TopicDescription(name, "id", count, 1) for name, count in partitions.items()}


def test_topics_are_made_until_their_partitions_are_used_up_and_then_declined() -> None:
    topics = hub()
    topics.meet({"a": ("a", 6), "b": ("b", 5), "c": ("c", 4)})
    assert sorted(topics.names) == ["a", "b", "c"]
    topics.admit({})
    assert topics.met == {"a": ("a", 6), "c": ("c", 4)}
    assert topics.declined == {"b"}
    topics.meet({"d": ("d", 1)})
    topics.admit(there(a=6, c=4))
    assert topics.declined == {"b", "d"}


def test_what_is_at_the_hub_already_costs_nothing_and_growth_costs_what_is_added() -> None:
    topics = hub()
    topics.meet({"large": ("large", 5_000), "grown": ("grown", 9)})
    topics.admit(there(large=5_000, grown=2))
    assert topics.declined == frozenset()
    topics.meet({"grown": ("grown", 13)})
    topics.admit(there(grown=9))
    assert topics.met["grown"] == ("grown", 9), "what it has stays in use"
    assert topics.declined == {"grown"}


def test_names_without_end_stop_the_mirror_with_the_remedy() -> None:
    topics = hub()
    topics.meet({f"t{n}": (f"t{n}", 1) for n in range(10 + MOST_DECLINED)})
    topics.admit({})
    topics.meet({"one more": ("one more", 1)})
    with pytest.raises(Refused, match=r"1,000 topics beyond the 10 partitions that `topics.create_at_most` allows"):
        topics.admit({})
