"""Judges a history. Each function is one thing that must hold and returns the sentences that say where it does not.

1 every committed source record is at the destination · 2 none twice · 3 order per partition kept · 4 key, value,
headers and timestamp byte for byte · 5 no aborted or open source record copied · 6 positions and records appear
together · 7 positions never go back · 8 what a concurrent read_committed reader saw is the final read · 9 after
healing: lag 0, no open transaction left · 10 no secret in any output

A record is known by its partition and value, which the workload makes unique.
"""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from tests.fault.history import History, Log
from tests.fault.workload import Identity
from tests.kafka_io import Record

MOST = 3  # sentences about one thing


def check(history: History) -> list[str]:
    """Every violation, each with the number of what it violates; none for a history that is as it must be."""
    return [f"{number}: {sentence}" for number, rule in RULES.items() for sentence in rule(history)[:MOST]]


def nothing_lost(history: History) -> list[str]:
    there = _identities(history.final)
    known = history.written.committed if history.written else set()
    wanted = set(_identities(history.source)) | known
    return [f"{_name(it)} was committed and is not at the destination" for it in sorted(wanted - set(there))]


def nothing_twice(history: History) -> list[str]:
    return [f"{_name(it)} is there {n} times" for it, n in Counter(_identities(history.final)).items() if n > 1]


def order_kept(history: History) -> list[str]:
    found = []
    for partition, records in history.source.items():
        place = {record.value: number for number, record in enumerate(records)}
        copied = [record for record in history.final.get(partition, []) if record.value in place]
        for before, after in pairwise(copied):
            if place[before.value] > place[after.value]:
                found.append(f"{_name((partition, after.value or b''))} stands behind a later record")
    return found


def nothing_altered(history: History) -> list[str]:
    originals = {(p, r.value): r for p, records in history.source.items() for r in records}
    found = []
    for partition, records in history.final.items():
        for record in records:
            original = originals.get((partition, record.value))
            if original is not None and _content(original) != _content(record):
                found.append(f"{_name((partition, record.value or b''))} was {original} and became {record}")
    return found


def nothing_uncommitted(history: History) -> list[str]:
    allowed = set(_identities(history.source))
    aborted = history.written.aborted if history.written else set()
    return [
        f"{_name(it)} {'was aborted' if it in aborted else 'is not at the source'} and stands at the destination"
        for it in _identities(history.final)
        if it not in allowed or it in aborted
    ]


def positions_with_records(history: History) -> list[str]:
    """A transaction's marker takes an offset, so a gap ends each: its last record's position must be in the ledger."""
    found = []
    for partition, records in history.final.items():
        offsets = {record.value: record.offset for record in history.source.get(partition, [])}
        last = [here for here, following in pairwise(records) if following.offset > here.offset + 1] + records[-1:]
        reached = {offsets[record.value] + 1 for record in last if record.value in offsets}
        told = {it.next for it in history.positions if it.partition == partition and not it.by_driver}
        found += [f"partition {partition}: position {at} has no records" for at in sorted(told - reached)]
        found += [f"partition {partition}: records up to {at} have no position" for at in sorted(reached - told)]
    return found


def positions_never_back(history: History) -> list[str]:
    found = []
    highest: dict[int, int] = {}
    for it in history.positions:
        if not it.by_driver and it.next < highest.get(it.partition, 0):
            found.append(f"partition {it.partition}: position {it.next} after {highest[it.partition]}")
        highest[it.partition] = max(it.next, highest.get(it.partition, 0))
    return found


def witness_agrees(history: History) -> list[str]:
    found = []
    for partition in history.seen.keys() | history.final.keys():
        seen, final = history.seen.get(partition, []), history.final.get(partition, [])
        if seen != final:
            at = next((n for n, pair in enumerate(zip(seen, final, strict=False)) if pair[0] != pair[1]), None)
            where = min(len(seen), len(final)) if at is None else at
            found.append(f"partition {partition}: a reader saw {len(seen)} records, there are {len(final)}: at {where}")
    return found


def healed(history: History) -> list[str]:
    found = [f"{topic} has an open transaction" for topic in history.open_transactions]
    return [*found, *([f"lag is {history.lag}"] if history.lag else [])]


def nothing_told(history: History) -> list[str]:
    return [
        f"output {number} holds a secret"
        for number, output in enumerate(history.outputs)
        if any(secret in output for secret in history.secrets)
    ]


RULES: dict[int, Callable[[History], list[str]]] = {
    1: nothing_lost,
    2: nothing_twice,
    3: order_kept,
    4: nothing_altered,
    5: nothing_uncommitted,
    6: positions_with_records,
    7: positions_never_back,
    8: witness_agrees,
    9: healed,
    10: nothing_told,
}


def _identities(log: Log) -> list[Identity]:
    return [(partition, record.value or b"") for partition, records in log.items() for record in records]


def _content(record: Record) -> Record:
    return record._replace(offset=-1)


def _name(identity: Identity) -> str:
    return f"partition {identity[0]} {identity[1][:24]!r}"
