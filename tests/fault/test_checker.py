"""The checker itself: it passes a good history and fails each broken one, for the reason it was broken."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from tests.fault.checker import check
from tests.fault.history import History, LedgerPosition
from tests.fault.workload import Written
from tests.kafka_io import Record


def record(number: int, offset: int) -> Record:
    return Record(b"k", b"0/%d" % number, (("h", None),), 1000 + number, 0, offset)


def good() -> History:
    """Six records; offset 3 of the source was aborted. Copied in transactions of two, two and, after a gap, two."""
    source = {0: [record(n, at) for n, at in enumerate([0, 1, 2, 4, 5, 6])]}
    final = {0: [record(n, at) for n, at in enumerate([0, 1, 3, 4, 9, 10])]}
    positions = [
        LedgerPosition(0, 2, 1),
        LedgerPosition(0, 5, 1),
        LedgerPosition(0, 7, 8),
        LedgerPosition(0, 8, 8, True),
    ]
    written = Written({(0, b"0/%d" % n) for n in range(6)}, {(0, b"0/99")})
    return History(source, final, deepcopy(final), positions, written, outputs=["fine"], secrets=["hush"])


def lose(it: History) -> None:
    del it.final[0][1]
    del it.seen[0][1]


def lose_what_the_source_lost_too(it: History) -> None:
    assert it.written
    it.written.committed.add((0, b"0/77"))


def double(it: History) -> None:
    it.final[0].append(record(5, 11))
    it.seen = deepcopy(it.final)


def swap(it: History) -> None:
    first, second = it.final[0][0], it.final[0][1]
    it.final[0][:2] = [second._replace(offset=0), first._replace(offset=1)]
    it.seen = deepcopy(it.final)


def alter(**change: object) -> Callable[[History], None]:
    def altered(it: History) -> None:
        it.final[0][2] = it.final[0][2]._replace(**change)  # type: ignore[arg-type]
        it.seen = deepcopy(it.final)

    return altered


def copy_aborted(it: History) -> None:
    it.final[0].insert(4, Record(b"k", b"0/99", (), 1000, 0, 8))
    it.seen = deepcopy(it.final)


def forget_a_position(it: History) -> None:
    del it.positions[1]


def tell_a_position_without_records(it: History) -> None:
    it.positions.insert(1, LedgerPosition(0, 3, 1))


def go_back(it: History) -> None:
    it.positions.append(LedgerPosition(0, 5, 9))


def show_what_is_gone(it: History) -> None:
    it.seen[0].insert(4, record(4, 6))


def hide(it: History) -> None:
    del it.seen[0][2]


def leave_a_transaction(it: History) -> None:
    it.open_transactions.append("orders")


def leave_lag(it: History) -> None:
    it.lag = 1


def tell_a_secret(it: History) -> None:
    it.outputs.append("password=hush")


def test_a_good_history_passes() -> None:
    assert check(good()) == []


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (lose, 1),
        (lose_what_the_source_lost_too, 1),
        (double, 2),
        (swap, 3),
        (alter(key=b""), 4),
        (alter(key=None), 4),
        (alter(headers=(("h", b""),)), 4),
        (alter(headers=()), 4),
        (alter(timestamp=999), 4),
        (copy_aborted, 5),
        (forget_a_position, 6),
        (tell_a_position_without_records, 6),
        (go_back, 7),
        (show_what_is_gone, 8),
        (hide, 8),
        (leave_a_transaction, 9),
        (leave_lag, 9),
        (tell_a_secret, 10),
    ],
)
def test_a_broken_history_fails_for_its_own_reason(broken: Callable[[History], None], rule: int) -> None:
    history = good()
    broken(history)
    found = check(history)
    assert any(sentence.startswith(f"{rule}:") for sentence in found), found


def test_a_secret_or_an_open_transaction_fails_no_other_rule() -> None:
    history = good()
    tell_a_secret(history)
    leave_a_transaction(history)
    assert [sentence.split(":")[0] for sentence in check(history)] == ["9", "10"]
