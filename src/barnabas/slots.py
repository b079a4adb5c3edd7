"""How many tasks run at once, and how many of them one mirror may have.

A task whose destination hangs keeps its slot for minutes. Spark's pools share slots but set no limit, so the numbers
must leave one for the last mirror when all others hang: (mirrors - 1) * lanes < slots.
"""

from __future__ import annotations

SLOTS_PER_CORE = 2  # while a mirror's tasks wait for a cluster, others move
MOST_PER_CORE = 4  # for the sake of full lanes; each slot that is used is a Python worker of about 100 MB
MOST_MIRRORS = 32  # that have a slot each, if that is more


def slots_for(mirrors: int, cores: int) -> int:
    """Task slots of a session in which so many mirrors run."""
    for_full_lanes = min((mirrors - 1) * cores + 1, MOST_PER_CORE * cores)
    return max(SLOTS_PER_CORE * cores, for_full_lanes, min(mirrors, MOST_MIRRORS))


def lanes_of(slots: int, mirrors: int, most: int) -> int:
    """Tasks of a micro-batch: `most`, or fewer so that one slot is left when all mirrors but one hang."""
    return most if mirrors < 2 else max(1, min(most, (slots - 1) // (mirrors - 1)))
