"""How much of each partition waits in memory: less where there are many."""

import pytest

from barnabas.source import CONSUMERS, FETCHED_BYTES, POLLED_RECORDS, shares

FETCH, POLL = "kafka.max.partition.fetch.bytes", "kafka.max.poll.records"


@pytest.mark.parametrize("partitions", [1, 4, 16])
def test_few_partitions_have_all_they_can_use(partitions: int) -> None:
    assert shares(partitions) == shares(1)


@pytest.mark.parametrize("partitions", [17, 52, 64, 1000, 100_000])
def test_many_partitions_share_what_all_consumers_together_may_hold(partitions: int) -> None:
    consumers = min(partitions, CONSUMERS)
    fetch, poll = (int(shares(partitions)[key]) for key in (FETCH, POLL))
    assert 0 < fetch * consumers <= FETCHED_BYTES
    assert 0 < poll * consumers <= POLLED_RECORDS
    assert poll < int(shares(1)[POLL])
