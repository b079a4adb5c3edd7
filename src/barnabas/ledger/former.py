"""Ledgers of other names that hold positions of the same topics: a mirror that was renamed begins anew."""

from __future__ import annotations

from collections.abc import Collection

from barnabas.errors import BarnabasError
from barnabas.kafka.admin import Admin
from barnabas.ledger.state import LEDGER_PREFIX
from barnabas.ledger.topic import ledger_partition, read_state
from barnabas.model import Connection

MOST_READ = 20


def former_ledgers(
    connection: Connection, admin: Admin, known: Collection[str], topic_ids: Collection[str]
) -> list[str]:
    """The ledgers at this cluster with positions of these topics, but for the known ones. Reads a few at most."""
    found = []
    names = [name for name in admin.topic_names() if name.startswith(LEDGER_PREFIX) and name not in known]
    for name in names[:MOST_READ]:
        try:
            end = admin.offsets([ledger_partition(name)])[ledger_partition(name)].end
            positions = read_state(connection, name, end, committed=True).positions()
        except BarnabasError:  # not ours to read, or not a ledger: whoever runs that mirror will hear of it
            continue
        if any(position.topic_id in topic_ids for position in positions.values()):
            found.append(name)
    return found
